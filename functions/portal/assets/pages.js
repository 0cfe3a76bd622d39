// A list that is read page by page, as a table.

import { announce } from "./announce.js";
import { fill, h } from "./dom.js";
import { row, table } from "./table.js";
import { action } from "./ui.js";

/**
 * `load(cursor)` returns `{ items, next }`; `first` is the page that was read already; `columns` are as for `table`;
 * `show(item)` returns the cells of a row; `empty` is shown if there is nothing. A list with a filter may end a page
 * before it has `limit` items: `soFar(pages)` says how far the service has looked by then.
 */
export function pages({ label, columns, first, load, show, empty, limit = 0, soFar = null }) {
  const list = table({ "aria-label": label, columns });
  const [rows] = list.tBodies;
  const panel = h("div", { class: "card" }, list);
  const note = h("p", { class: "hint" });
  let next = null;
  let read = 0;
  const more = action("Show more", async () => {
    const page = await load(next);
    const added = add(page);
    const target = added[0] ?? (next ? null : (rows.lastElementChild ?? node.firstElementChild));
    target?.setAttribute("tabindex", "-1");
    target?.focus();
    announce(
      added.length ? `${added.length} more. ${note.textContent}` : next ? note.textContent : "There are no more.",
    );
  });
  const node = h("div", { class: "flow" }, panel, note, more);
  const add = page => {
    const added = page.items.map(item => row(columns, show(item)));
    rows.append(...added);
    next = page.next;
    read += 1;
    const isShort = next && page.items.length < limit;
    fill(note, isShort && [!rows.children.length && "Nothing found yet. ", soFar(read)]);
    fill(more.querySelector("button"), isShort ? "Look further" : "Show more");
    more.hidden = !next;
    panel.hidden = !rows.children.length;
    note.hidden = !isShort;
    if (!next && panel.hidden) fill(node, empty);
    return added;
  };
  add(first);
  return node;
}
