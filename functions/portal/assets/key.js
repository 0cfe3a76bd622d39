// The screen of one key: what it may do, and how to rename, replace or end it.

import { ApiError, patch, path, remove } from "./api.js";
import { LIMITS } from "./domain.js";
import { confirm, open } from "./dialogs.js";
import { code, h, userText } from "./dom.js";
import { time } from "./format.js";
import { field, form } from "./forms.js";
import { expiryFields, showNewKey } from "./key-create.js";
import { findKey } from "./key-list.js";
import { abilities, ending, expiry, isExpiringSoon, isLive, lastUse, scopeTitle, statusBadge } from "./key-words.js";
import { go, refresh } from "./router.js";
import { button, facts, link, notice, section } from "./ui.js";

const HOUR_MS = 3_600_000;

export async function keyScreen({ id }, { signal }) {
  const key = await findKey(id, signal);
  if (!key) throw new ApiError("refused", "", { status: 404, code: "not_found" });
  return {
    title: key.name,
    heading: [userText(key.name), " ", statusBadge(key)],
    parent: { href: "/keys", text: "Keys" },
    content: [
      banner(key),
      facts([
        ["What it is for", scopeTitle(key.scope)],
        ["What it may do", abilities(key)],
        ["How to recognise it", code(key.display)],
        ["Created", time(key.created_at)],
        ["Last used", time(key.last_used_at)],
        ["End", ending(key)],
      ]),
      key.status !== "revoked" && section("Change it", h("p", { class: "buttons" },
        button("Rename", () => rename(key), { id: "rename" }),
        key.status === "active" && button("Change its end", () => changeEnd(key), { id: "end" }),
        key.status === "active" && button("Replace", () => rotate(key), { id: "rotate" }))),
      isLive(key) && section("End it", h("p", {}, "Whatever uses this key stops working at once. Its record stays here."),
        button("Revoke", () => revoke(key), { id: "revoke", kind: "danger" })),
    ],
  };
}

function banner(key) {
  if (key.status === "replaced") {
    return notice("warn", "This key was replaced", h("p", {}, "It works until ", time(key.works_until), ". Until then, put the ",
      successor(key, "new key"), " everywhere where this one is in use."), h("p", {}, lastUse(key), "."));
  }
  if (key.status === "expired" && key.replaced_by) return notice("calm", "This key has ended", h("p", {}, "Use the ", successor(key, "new key"), "."));
  if (key.status === "expired") return notice("calm", "This key has ended", h("p", {}, "It is refused. Create a new key for the system that used it."));
  if (key.status === "revoked") return notice("calm", "This key is revoked", h("p", {}, "It is refused for good. Its record stays here."));
  if (isExpiringSoon(key)) {
    return notice("warn", "This key ends soon", h("p", {}, "After ", time(key.expires_at), " it is refused. Change its end, or replace it."));
  }
  return null;
}

const successor = (key, text) => key.replaced_by ? link(`#/keys/${encodeURIComponent(key.replaced_by)}`, text) : text;

async function rename(key) {
  const done = await open("Rename the key", close => form({
    submit: "Save",
    cancel: button("Cancel", () => close(false)),
    send: async ({ name }) => {
      await patch(path`/settings/keys/${key.id}`, { name });
      close(true);
    },
  }, field({ name: "name", label: "Name", value: key.name, required: true, maxlength: LIMITS.keyName, dir: "auto" })));
  if (done) await refresh("The key is renamed.");
}

async function changeEnd(key) {
  const opened = new Date();
  const done = await open("Change the end of the key", close => form({
    submit: "Save",
    cancel: button("Cancel", () => close(false)),
    send: async ({ until, date }) => {
      await patch(path`/settings/keys/${key.id}`, { expires_at: expiry(until, date, opened) });
      close(true);
    },
  }, h("p", {}, "Now: ", ending(key), "."), ...expiryFields("never")));
  if (done) await refresh("The end of the key is changed.");
}

async function rotate(key) {
  let made = null;
  const until = new Date(Math.min(Date.now() + LIMITS.keyOverlapHours * HOUR_MS, key.expires_at ? new Date(key.expires_at) : Infinity));
  const done = await confirm({
    title: "Replace the key",
    kind: "main",
    verb: "Replace the key",
    words: [
      h("p", {}, "You get a new key with the same name and the same rights. It works at once."),
      h("p", {}, "The old key goes on working until ", time(until.toISOString()), ". By then, put the new key everywhere where the old one "
        + "is in use. Has a stranger seen the old key? Then revoke it as soon as the new one is in place."),
    ],
    run: async (_, once) => {
      made = await once.post(path`/settings/keys/${key.id}/rotate`);
    },
  });
  if (!done) return;
  await showNewKey(made);
  go(`/keys/${encodeURIComponent(made.id)}`, "This is the new key. The old one still works for a while: its page says until when.");
}

async function revoke(key) {
  const done = await confirm({
    title: "Revoke the key",
    verb: "Revoke the key",
    words: [
      h("p", {}, h("strong", {}, userText(key.name)), " is refused from now on. Whatever uses it stops working at once. This cannot be undone."),
      h("p", {}, lastUse(key), "."),
    ],
    run: () => remove(path`/settings/keys/${key.id}`),
  });
  if (done) await refresh("The key is revoked.");
}
