// Renames, replaces and revokes a key, and changes when the key ends.

import { patch, path, remove } from "./api.js";
import { ask, confirm } from "./dialogs.js";
import { LIMITS } from "./domain.js";
import { h, userText } from "./dom.js";
import { time } from "./format.js";
import { field } from "./forms.js";
import { expiryFields, showNewKey } from "./key-create.js";
import { findKey } from "./key-list.js";
import { ending, expiry, lastDay, lastUse, until } from "./key-words.js";
import { now } from "./service-clock.js";
import { link } from "./ui.js";

/** Asks for another name. */
export async function rename(key, page) {
  const done = await ask(
    {
      title: "Rename the key",
      verb: "Save",
      send: ({ name }) => patch(path`/settings/keys/${key.id}`, { name }),
    },
    field({ name: "name", label: "Name", value: key.name, required: true, maxlength: LIMITS.keyName, dir: "auto" }),
  );
  if (done) await page.refresh("The key is renamed.");
}

/** Asks for another end. */
export async function changeEnd(key, page) {
  const opened = new Date(now());
  const present = key.expires_at && lastDay(key.expires_at);
  const done = await ask(
    {
      title: "Change when the key ends",
      verb: "Save",
      send: ({ until, date }) => {
        const expires_at = until === "date" && date === present ? key.expires_at : expiry(until, date, opened);
        return patch(path`/settings/keys/${key.id}`, { expires_at });
      },
    },
    h("p", {}, "Now: ", ending(key), "."),
    expiryFields(present),
  );
  if (done) await page.refresh("The end of the key is changed.");
}

/** Replaces the key by a new one, which is shown once. */
export async function rotate(key, page) {
  let made = null;
  const done = await confirm({
    title: "Replace the key",
    kind: "main",
    verb: "Replace the key",
    words: [
      h("p", {}, "You get a new key with the same name and the same rights. It works at once."),
      h(
        "p",
        {},
        `The old key goes on working for ${LIMITS.keyOverlapHours} hours`,
        key.expires_at && [", but not beyond its own end (", until(key.expires_at), ")"],
        ". By then, put the new key everywhere where the old one is in use. " +
          "Has a stranger seen the old key? Then revoke it as soon as the new one is in place.",
      ),
    ],
    run: async (_, once) => {
      made = await once.post(path`/settings/keys/${key.id}/rotate`);
    },
  });
  if (!done) return;
  await showNewKey(made);
  if (page.signal.aborted) return;
  const old = await findKey(key.id, page.signal).catch(() => null);
  page.go(path`/keys/${made.id}`, [
    "This is the new key. ",
    link(path`#/keys/${key.id}`, "The old key"),
    old?.works_until ? [" works until ", time(old.works_until), "."] : " tells until when it works.",
  ]);
}

/** Asks, then ends the key for good. */
export async function revoke(key, page) {
  const done = await confirm({
    title: "Revoke the key",
    verb: "Revoke the key",
    words: [
      h(
        "p",
        {},
        h("strong", {}, userText(key.label)),
        " is refused from now on. Whatever uses it stops working at once. This cannot be undone. Its record stays here.",
      ),
      h("p", {}, lastUse(key), "."),
    ],
    run: () => remove(path`/settings/keys/${key.id}`),
  });
  if (done) await page.refresh("The key is revoked.");
}
