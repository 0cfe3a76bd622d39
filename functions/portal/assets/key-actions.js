// What a coach can do with a key: rename it, change its end, replace it, revoke it.

import { patch, path, remove } from "./api.js";
import { confirm, open } from "./dialogs.js";
import { LIMITS } from "./domain.js";
import { h, userText } from "./dom.js";
import { time } from "./format.js";
import { field, form } from "./forms.js";
import { expiryFields, showNewKey } from "./key-create.js";
import { ending, expiry, lastUse } from "./key-words.js";
import { go, refresh } from "./router.js";
import { button } from "./ui.js";

const HOUR_MS = 3_600_000;

/** Asks for another name. */
export async function rename(key) {
  const done = await open("Rename the key", close =>
    form(
      {
        submit: "Save",
        cancel: button("Cancel", () => close(false)),
        send: async ({ name }) => {
          await patch(path`/settings/keys/${key.id}`, { name });
          close(true);
        },
      },
      field({ name: "name", label: "Name", value: key.name, required: true, maxlength: LIMITS.keyName, dir: "auto" }),
    ),
  );
  if (done) await refresh("The key is renamed.");
}

/** Asks for another end. */
export async function changeEnd(key) {
  const opened = new Date();
  const done = await open("Change the end of the key", close =>
    form(
      {
        submit: "Save",
        cancel: button("Cancel", () => close(false)),
        send: async ({ until, date }) => {
          await patch(path`/settings/keys/${key.id}`, { expires_at: expiry(until, date, opened) });
          close(true);
        },
      },
      h("p", {}, "Now: ", ending(key), "."),
      ...expiryFields("never"),
    ),
  );
  if (done) await refresh("The end of the key is changed.");
}

/** Replaces the key by a new one, which is shown once. */
export async function rotate(key) {
  let made = null;
  const until = new Date(
    Math.min(Date.now() + LIMITS.keyOverlapHours * HOUR_MS, key.expires_at ? new Date(key.expires_at) : Infinity),
  );
  const done = await confirm({
    title: "Replace the key",
    kind: "main",
    verb: "Replace the key",
    words: [
      h("p", {}, "You get a new key with the same name and the same rights. It works at once."),
      h(
        "p",
        {},
        "The old key goes on working until ",
        time(until.toISOString()),
        ". By then, put the new key everywhere where the old one " +
          "is in use. Has a stranger seen the old key? Then revoke it as soon as the new one is in place.",
      ),
    ],
    run: async (_, once) => {
      made = await once.post(path`/settings/keys/${key.id}/rotate`);
    },
  });
  if (!done) return;
  await showNewKey(made);
  go(
    `/keys/${encodeURIComponent(made.id)}`,
    "This is the new key. The old one still works for a while: its page says until when.",
  );
}

/** Asks, then ends the key for good. */
export async function revoke(key) {
  const done = await confirm({
    title: "Revoke the key",
    verb: "Revoke the key",
    words: [
      h(
        "p",
        {},
        h("strong", {}, userText(key.name)),
        " is refused from now on. Whatever uses it stops working at once. This cannot be undone.",
      ),
      h("p", {}, lastUse(key), "."),
    ],
    run: () => remove(path`/settings/keys/${key.id}`),
  });
  if (done) await refresh("The key is revoked.");
}
