// Bars of what was sent over time: delivered events upwards, and failed tries downwards and hatched. A table says
// the same to those who do not see the bars.

import { h } from "./dom.js";
import { clock, count, day, number, weekday } from "./format.js";
import { plot } from "./plot.js";
import { table } from "./table.js";
import { empty } from "./ui.js";

const QUARTER_HOURS = 6;

/** The last 24 hours, hour by hour. `hours`: `[{ at, delivered, failed }]` of each hour, oldest first. */
export function dayBars(hours) {
  const parts = grouped(hours, at => at.getTime());
  const name = at => `${weekday(at)}, ${clock(at)}`;
  const tick = at => at.getHours() % QUARTER_HOURS === 0 && clock(at);
  return bars({ period: "the last 24 hours", column: "Hour from", parts, rows: parts, name, nameOfRow: name, tick });
}

/** The last seven days, in quarters of days. The table has a row for each day. `hours` as for `dayBars`. */
export function weekBars(hours) {
  const parts = grouped(hours, at => `${at.toDateString()} ${Math.floor(at.getHours() / QUARTER_HOURS)}`);
  const rows = grouped(hours, at => at.toDateString());
  const name = at => `${day(at)}, from ${clock(at)}`;
  return bars({ period: "the last 7 days", column: "Day", parts, rows, name, nameOfRow: day, tick: () => false });
}

/** Adds up neighbours with the same `key(at)`. The result has `at` as a `Date`, in the time zone of the browser. */
function grouped(hours, key) {
  const groups = [];
  for (const { at: iso, delivered, failed } of hours) {
    const at = new Date(iso);
    const last = groups.at(-1);
    if (last && key(last.at) === key(at)) {
      last.delivered += delivered;
      last.failed += failed;
    } else groups.push({ at, delivered, failed });
  }
  return groups;
}

/**
 * `parts` are drawn, and `rows` are in the table. `name(at)` and `nameOfRow(at)` name them; `tick(at)` is the text
 * below a bar, or false. A bar with which a day begins has the name of the day.
 */
function bars({ period, column, parts, rows, name, nameOfRow, tick }) {
  const delivered = rows.reduce((sum, row) => sum + row.delivered, 0);
  const failed = rows.reduce((sum, row) => sum + row.failed, 0);
  if (!delivered && !failed)
    return empty(
      "warn",
      `Nothing was sent in ${period}`,
      h("p", { class: "soft" }, "When something happens to your clients, it shows here."),
    );
  return h(
    "figure",
    { class: "bars card" },
    h(
      "figcaption",
      {},
      h("span", { class: "delivered" }, `${count(delivered, "event")} delivered`),
      h("span", { class: "failed" }, count(failed, "failed try", "failed tries")),
    ),
    plot(parts, name, tick),
    h("details", {}, h("summary", {}, "The same as a table"), numbers(period, column, rows, nameOfRow)),
  );
}

const numbers = (period, column, rows, name) =>
  table({
    caption: `Sent in ${period}`,
    columns: [[column], ["Delivered", "number"], ["Failed tries", "number"]],
    rows: rows.map(({ at, delivered, failed }) => [name(at), number(delivered), number(failed)]),
  });
