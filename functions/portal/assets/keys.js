// The screen "Keys": all keys, live ones first.

import { get } from "./api.js";
import { h } from "./dom.js";
import { count } from "./format.js";
import { KEY_COLUMNS, keyCells, readKeys } from "./key-list.js";
import { pages } from "./pages.js";
import { empty, linkButton, notice } from "./ui.js";

export async function keys(_, { signal }) {
  const [workspace, first] = await Promise.all([get("/settings/workspace", {}, signal), readKeys(null, signal)]);
  const { live, max } = workspace.keys;
  const create = linkButton("#/keys/new", "Create a key", "main");
  return {
    title: "Keys",
    actions: live < max && first.items.length > 0 && create,
    content: [
      h(
        "p",
        { class: "lead" },
        "A key lets another system, such as an automation platform or your own website, work with your " +
          "workspace. Give every system its own key, so that you can end one without touching the others.",
      ),
      live >= max &&
        notice(
          "warn",
          "You have as many active keys as you can have",
          h("p", {}, `Revoke one of the ${max} that you do not use. Then you can create another.`),
        ),
      h("p", { class: "hint" }, `${count(live, "active key")} of at most ${max}.`),
      pages({
        label: "Keys",
        columns: KEY_COLUMNS,
        first,
        load: cursor => readKeys(cursor, signal),
        show: keyCells,
        empty: empty(
          "key",
          "No keys yet",
          h("p", { class: "soft" }, "You need a key when another system asks you for an “API key” of this service."),
          create,
        ),
      }),
    ],
  };
}
