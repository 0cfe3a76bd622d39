// Tables. Where there is no room for columns the style sheet makes cards of the rows, by another `display`. In some
// browsers that takes the roles away, so each element names its own.

import { h } from "./dom.js";

/**
 * A table. `columns`: `[title, kind]` each; `rows`: the cells of each, of which the first is the heading of its row.
 * On a card each cell has the title of its column, unless `kind` is `sign` (a badge says what it is) or `wide` (a line
 * of its own). A `number` stays on one line. `props` are attributes, such as `aria-label`.
 */
export const table = ({ columns, rows = [], caption, ...props }) =>
  h(
    "table",
    { class: "table", role: "table", ...props },
    caption && h("caption", { class: "unseen" }, caption),
    h(
      "thead",
      { role: "rowgroup" },
      h(
        "tr",
        { role: "row" },
        columns.map(([title]) => h("th", { scope: "col", role: "columnheader" }, title)),
      ),
    ),
    h(
      "tbody",
      { role: "rowgroup" },
      rows.map(cells => row(columns, cells)),
    ),
  );

/** A row of a table with these columns. */
export const row = (columns, [first, ...others]) =>
  h(
    "tr",
    { role: "row" },
    h("th", { scope: "row", role: "rowheader", class: columns[0][1] }, first),
    others.map(cellOf(columns)),
  );

const cellOf = columns => (content, at) => {
  const [title, kind] = columns[at + 1];
  return h("td", { role: "cell", class: kind, "data-label": kind !== "sign" && kind !== "wide" && title }, content);
};
