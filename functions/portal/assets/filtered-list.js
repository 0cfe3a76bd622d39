// A list with filters, read page by page. The filters are kept in the address.

import { announce } from "./announce.js";
import { getPage } from "./api.js";
import { timeField } from "./date-field.js";
import { fill, h } from "./dom.js";
import { count } from "./format.js";
import { field, form } from "./forms.js";
import { pages } from "./pages.js";
import { button, empty, link } from "./ui.js";

const PAGE = 50;

/**
 * Returns the items of `source` (a path of the API) with the filters of the address, as a node. `names`: the filters,
 * as the API names them; `fields(filters)`: the fields of their form; `noun`: an item in a word; `lookedAt`: the most
 * items that the service reads for a page; `none(filters)`: the title if nothing fits, if there is a better one;
 * `empty`: shown if there is nothing without a filter. The rest as for `pages`.
 */
export async function filteredList({ source, names, fields, noun, lookedAt, none, empty: nothing, page, ...look }) {
  const filters = Object.fromEntries(names.map(name => [name, page.query.get(name)]));
  const results = h("div", {});
  const load = query => getPage(source, { ...query, limit: PAGE }, page.signal);
  const list = (used, first) =>
    pages({
      ...look,
      first,
      load: cursor => load({ ...used, cursor }),
      empty: isUsed(used)
        ? empty(
            "search",
            none?.(used) ?? `No ${noun} fits the filter`,
            link(location.hash.split("?")[0], "Show it without a filter"),
          )
        : nothing,
      limit: PAGE,
      soFar: read => `Looked at up to ${count(read * lookedAt, noun)} so far, newest first.`,
    });
  const apply = async used => {
    const read = await load(used);
    remember(used);
    fill(results, list(used, read));
    announce(`${count(read.items.length, noun)}${read.next ? ", and there may be more" : ""}.`);
  };
  const clear = button("Show all", () => {
    remember({});
    return page.refresh();
  });
  fill(results, list(filters, await load(filters)));
  const search = form(
    { submit: "Apply the filter", kind: null, cancel: clear, send: apply },
    h("div", { class: "row" }, fields(filters)),
  );
  const panel = h("details", { class: "filters", open: isUsed(filters) }, h("summary", {}, "Filter"), search);
  return h("div", { class: "flow" }, panel, results);
}

const isUsed = filters => Object.values(filters).some(Boolean);

/** A filter with choices, `[[value, text], ...]`. */
export const choiceFilter = (name, label, options, filters) =>
  field({ name, label, tag: "select", options: [["", "All"], ...options], value: filters[name] ?? "" });

/** The filters for the time of the items. */
export const timeFilters = ({ since, until }) => [
  timeField({ name: "since", label: "From", iso: since }),
  timeField({ name: "until", label: "Before", iso: until }),
];

/** Keeps the filters in the address, so that "back" returns to the same list. */
function remember(filters) {
  const used = Object.entries(filters).filter(([, value]) => value);
  const [address] = location.hash.split("?");
  history.replaceState(null, "", used.length ? `${address}?${new URLSearchParams(used)}` : address);
}
