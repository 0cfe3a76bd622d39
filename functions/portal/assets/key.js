// The screen of one key.

import { path } from "./api.js";
import { code, h, userText } from "./dom.js";
import { eventTypes } from "./event-types.js";
import { time } from "./format.js";
import { changeEnd, rename, revoke, rotate } from "./key-actions.js";
import { eventFacts } from "./key-events.js";
import { lateUse, readLateUse } from "./key-late-use.js";
import { readKey } from "./key-list.js";
import { abilities, ending, isExpiringSoon, isLive, lastUse, scopeTitle, statusBadge, until } from "./key-words.js";
import { button, facts, link, linkButton, notice } from "./ui.js";

export async function keyScreen({ id }, page) {
  const [key, types] = await Promise.all([readKey(id, page.signal), eventTypes()]);
  const used = (await readLateUse([key], page.signal)).get(id);
  return {
    title: key.label,
    heading: [userText(key.label), " ", statusBadge(key)],
    parent: { href: "/keys", text: "Keys" },
    actions: actions(key, page),
    content: [
      used ? lateUse(key, used) : banner(key),
      facts([
        ["What it is for", scopeTitle(key.scope)],
        ["What it may do", abilities(key)],
        ...eventFacts(types, key.events),
        ["It looks like this", code(key.display)],
        ["Created", time(key.created_at)],
        ["Last used", time(key.last_used_at)],
        ["How long it works", ending(key)],
      ]),
    ],
  };
}

function actions(key, page) {
  const isActive = key.status === "active";
  return [
    linkButton(path`#/requests?key_id=${key.id}`, "See its requests"),
    key.status !== "revoked" && button("Rename", () => rename(key, page), { id: "rename" }),
    isActive && linkButton(path`#/keys/${key.id}/events`, "Change events"),
    isActive && button("Change when it ends", () => changeEnd(key, page), { id: "end" }),
    isActive && button("Replace", () => rotate(key, page), { id: "rotate" }),
    isLive(key) && button("Revoke", () => revoke(key, page), { id: "revoke", kind: "danger" }),
  ];
}

function banner(key) {
  if (key.status === "replaced") {
    return notice(
      "warn",
      "This key was replaced",
      h(
        "p",
        {},
        "It works until ",
        until(key.works_until),
        ". Until then, put the ",
        successor(key, "new key"),
        " everywhere where this one is in use.",
      ),
      h("p", {}, lastUse(key), "."),
    );
  }
  if (key.status === "expired" && key.replaced_by)
    return notice("calm", "This key has ended", h("p", {}, "Use the ", successor(key, "new key"), "."));
  if (key.status === "expired")
    return notice(
      "calm",
      "This key has ended",
      h("p", {}, "It is refused. Create a new key for the system that used it."),
    );
  if (key.status === "revoked")
    return notice("calm", "This key is revoked", h("p", {}, "It is refused for good. Its record stays here."));
  if (isExpiringSoon(key)) {
    return notice(
      "warn",
      "This key ends soon",
      h("p", {}, "It works until ", until(key.expires_at), ". Change when it ends, or replace it."),
    );
  }
  return null;
}

const successor = (key, text) => (key.replaced_by ? link(`#/keys/${encodeURIComponent(key.replaced_by)}`, text) : text);
