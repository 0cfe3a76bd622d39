// The screen "Keys": all keys, live ones first.

import { get } from "./api.js";
import { code, h, userText } from "./dom.js";
import { ending, lastUse, scopeTitle, statusBadge } from "./key-words.js";
import { readKeys } from "./key-list.js";
import { count } from "./format.js";
import { pages } from "./pages.js";
import { link, notice } from "./ui.js";

export async function keys(_, { signal }) {
  const [workspace, first] = await Promise.all([get("/settings/workspace", {}, signal), readKeys(null, signal)]);
  const { live, max } = workspace.keys;
  return {
    title: "Keys",
    content: [
      h(
        "p",
        { class: "lead" },
        "A key lets another system, such as an automation platform or your own website, work with your " +
          "workspace. Give every system its own key, so that you can end one without touching the others.",
      ),
      live >= max
        ? notice(
            "warn",
            "You have as many active keys as you can have",
            h("p", {}, `Revoke one of the ${max} that you do not use. ` + "Then you can create another."),
          )
        : h("p", {}, h("a", { class: "button main", href: "#/keys/new" }, "Create a key")),
      h("p", { class: "hint" }, `${count(live, "active key")} of at most ${max}.`),
      pages({ label: "Keys", first, load: cursor => readKeys(cursor, signal), show: card, empty: nothing() }),
    ],
  };
}

function card(key) {
  return [
    h("h2", {}, link(`#/keys/${encodeURIComponent(key.id)}`, userText(key.label)), statusBadge(key)),
    h("p", {}, `${scopeTitle(key.scope)} · `, code(key.display), key.events && " · reads events"),
    h("p", { class: "hint" }, lastUse(key), " · ", ending(key)),
  ];
}

const nothing = () => [
  h("h2", {}, "No keys yet"),
  h("p", {}, "You need a key when another system asks you for an “API key” of this service."),
];
