// A list of events that were sent or wait, with its filters, read page by page.

import { announce } from "./announce.js";
import { getPage, path } from "./api.js";
import { titleOf } from "./event-types.js";
import { FILTERS, filterForm, remember } from "./delivery-filters.js";
import { LIMITS } from "./domain.js";
import { code, fill, h } from "./dom.js";
import { capital, count, due, time } from "./format.js";
import { isAccepted, outcome, wasSent } from "./outcome.js";
import { pages } from "./pages.js";
import { badge, link } from "./ui.js";
import { called } from "./webhook-list.js";
import { deliveryBadge } from "./webhook-status.js";

const PAGE = 50;

/**
 * Returns the deliveries of `source` (a path of the API) with the filters of the address, as a node. `endpoints`: all
 * webhooks, if the list is of all; `endpoint`: the one webhook, if it is of one.
 */
export async function deliveryList({ source, page, types, endpoints = null, endpoint = null }) {
  const filters = Object.fromEntries(FILTERS.map(name => [name, page.query.get(name)]));
  const results = h("div", {});
  const first = await load(source, filters, page);
  const known = new Map((endpoint ? [endpoint] : endpoints).map(one => [one.id, one]));
  const show = delivery => card(delivery, types, known.get(delivery.endpoint_id), !endpoint);
  const list = (used, read) =>
    pages({
      label: "Sent events",
      first: read,
      load: cursor => load(source, { ...used, cursor }, page),
      show,
      empty: empty(used),
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
  return h("div", {}, filterForm({ filters, types, endpoints, apply, page }), results);
}

const load = (source, query, { signal }) => getPage(source, { ...query, limit: PAGE }, signal);

const empty = filters =>
  h("p", {}, Object.values(filters).some(Boolean) ? "No event fits the filter." : `Nothing was sent in the last ${LIMITS.deliveriesKeptDays} days.`);

/** `endpoint`: the webhook, if it is not deleted; `isOfMany`: the list is of all webhooks. */
function card(delivery, types, endpoint, isOfMany) {
  const { id, attempts, next_attempt_at: next } = delivery;
  const last = attempts.at(-1);
  const where = () => isOfMany && [", to ", endpoint ? called(endpoint) : ["a deleted webhook (", code(delivery.endpoint_id), ")"]];
  // Many events have the same title: in a list of links, the time and the webhook tell them apart.
  const title = [titleOf(types, delivery.type), h("span", { class: "unseen" }, " of ", time(delivery.created_at), where())];
  const tries = attempts.filter(wasSent).length;
  return [
    h(
      isOfMany ? "h2" : "h3",
      {},
      endpoint ? link(path`#/webhooks/${endpoint.id}/deliveries/${id}`, title) : title,
      " ",
      deliveryBadge(delivery),
      delivery.test && [" ", badge("calm", "Test")],
    ),
    h(
      "p",
      {},
      time(delivery.created_at),
      where(),
      ". ",
      tries > 1 && `Tried ${tries} times. `,
      last && !isAccepted(last) && `${capital(outcome(last))}.`,
      next && [` The ${last ? "next" : "first"} try is `, due(next), "."],
    ),
  ];
}
