// A list that is read page by page.

import { announce } from "./announce.js";
import { fill, h } from "./dom.js";
import { action, card, cards } from "./ui.js";

/**
 * `load(cursor)` returns `{ items, next }`; `first` is the page that was read already; `show(item)` returns the
 * content of a card; `empty` is shown if there is nothing. A list with a filter may end a page before it has
 * `limit` items: `soFar(pages)` says how far the service has looked by then.
 */
export function pages({ label, first, load, show, empty, limit = 0, soFar = null }) {
  const items = cards(label, []);
  const note = h("p", { class: "hint" });
  let next = null;
  let read = 0;
  const more = action("Show more", async () => {
    const page = await load(next);
    const added = add(page);
    const target = added[0] ?? (next ? null : (items.lastElementChild ?? node.firstElementChild));
    target?.setAttribute("tabindex", "-1");
    target?.focus();
    announce(added.length ? `${added.length} more. ${note.textContent}` : next ? note.textContent : "There are no more.");
  });
  const node = h("div", {}, items, note, more);
  const add = page => {
    const added = page.items.map(item => card(show(item)));
    items.append(...added);
    next = page.next;
    read += 1;
    const isShort = next && page.items.length < limit;
    fill(note, isShort && [!items.children.length && "Nothing found yet. ", soFar(read)]);
    fill(more.querySelector("button"), isShort ? "Look further" : "Show more");
    more.hidden = !next;
    items.hidden = !items.children.length;
    note.hidden = !isShort;
    if (!next && items.hidden) fill(node, h("div", { class: "empty" }, empty));
    return added;
  };
  add(first);
  return node;
}
