// A list of events that were sent or wait, with its filters, read page by page.

import { announce } from "./announce.js";
import { getPage, path } from "./api.js";
import { titleOf } from "./event-types.js";
import { FILTERS, filterForm, remember } from "./delivery-filters.js";
import { LIMITS } from "./domain.js";
import { code, fill, h } from "./dom.js";
import { capital, count, due, number, time } from "./format.js";
import { outcome, wasSent } from "./outcome.js";
import { pages } from "./pages.js";
import { badge, empty, link } from "./ui.js";
import { called } from "./webhook-list.js";
import { deliveryBadge } from "./webhook-status.js";

const PAGE = 50;
const COLUMNS = [
  ["Event"],
  ["Status", "sign"],
  ["Webhook"],
  ["Created", "number"],
  ["Tries", "number"],
  ["What happened", "wide"],
];

/**
 * Returns the deliveries of `source` (a path of the API) with the filters of the address, as a node. `endpoints`: all
 * webhooks, if the list is of all; `endpoint`: the one webhook, if it is of one.
 */
export async function deliveryList({ source, page, types, endpoints = null, endpoint = null }) {
  const filters = Object.fromEntries(FILTERS.map(name => [name, page.query.get(name)]));
  const results = h("div", {});
  const first = await load(source, filters, page);
  const known = new Map((endpoint ? [endpoint] : endpoints).map(one => [one.id, one]));
  const show = delivery => cells(delivery, types, known.get(delivery.endpoint_id), !endpoint);
  const list = (used, read) =>
    pages({
      label: "Sent events",
      columns: COLUMNS.filter(([title]) => title !== "Webhook" || !endpoint),
      first: read,
      load: cursor => load(source, { ...used, cursor }, page),
      show,
      empty: nothing(used, endpoint?.status === "enabled"),
      limit: PAGE,
      soFar: read => `Looked at up to ${count(read * LIMITS.lookedAt, "event")} so far, newest first.`,
    });
  fill(results, list(filters, first));
  const apply = async used => {
    const read = await load(source, used, page);
    remember(used);
    fill(results, list(used, read));
    announce(`${count(read.items.length, "event")}${read.next ? ", and there may be more" : ""}.`);
  };
  return h("div", { class: "flow" }, filterForm({ filters, types, endpoints, apply, page }), results);
}

const load = (source, query, { signal }) => getPage(source, { ...query, limit: PAGE }, signal);

const nothing = (filters, canTest) =>
  Object.values(filters).some(Boolean)
    ? empty("search", "No event fits the filter", link(location.hash.split("?")[0], "Show it without a filter"))
    : empty(
        "hook",
        `Nothing was sent in the last ${LIMITS.deliveriesKeptDays} days`,
        canTest && h("p", { class: "soft" }, "Send a test event above, to see that the other system gets it."),
      );

/** `endpoint`: the webhook, if it is not deleted; `isOfMany`: the list is of all webhooks. */
function cells(delivery, types, endpoint, isOfMany) {
  const { id, attempts, next_attempt_at: next } = delivery;
  const last = attempts.at(-1);
  const where = () => (endpoint ? called(endpoint) : ["a deleted webhook (", code(delivery.endpoint_id), ")"]);
  // Many events have the same title: in a list of links, the time and the webhook tell them apart.
  const title = [
    titleOf(types, delivery.type),
    h("span", { class: "unseen" }, " of ", time(delivery.created_at), isOfMany && [", to ", where()]),
  ];
  return [
    [
      endpoint ? link(path`#/webhooks/${endpoint.id}/deliveries/${id}`, title) : title,
      delivery.test && [" ", badge("info", "Test")],
    ],
    deliveryBadge(delivery),
    ...(isOfMany ? [where()] : []),
    time(delivery.created_at),
    number(attempts.filter(wasSent).length),
    [last && `${capital(outcome(last))}.`, next && [` The ${last ? "next" : "first"} try is `, due(next), "."]],
  ];
}
