// A list of events that were sent or wait, with its filters, read page by page.

import { announce } from "./announce.js";
import { getPage, path } from "./api.js";
import { titleOf } from "./event-types.js";
import { FILTERS, filterForm, remember } from "./delivery-filters.js";
import { LIMITS } from "./domain.js";
import { fill, h } from "./dom.js";
import { capital, count, due, host, time } from "./format.js";
import { isAccepted, outcome, wasSent } from "./outcome.js";
import { badge, link, pages } from "./ui.js";
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
  const hosts = new Map((endpoints ?? []).map(({ id, url }) => [id, url]));
  const show = delivery => card(delivery, types, hosts, endpoint);
  const list = (used, read) =>
    pages({
      label: "Sent events",
      first: read,
      load: cursor => load(source, { ...used, cursor }, page),
      show,
      empty: empty(used),
    });
  fill(results, list(filters, first));
  const apply = async used => {
    const read = await load(source, used, page);
    remember(used);
    fill(results, list(used, read));
    announce(`${count(read.items.length, "event")}${read.next ? ", and there are more" : ""}.`);
  };
  return h("div", {}, filterForm({ filters, types, endpoints, apply, page }), results);
}

const load = (source, query, { signal }) => getPage(source, { ...query, limit: PAGE }, signal);

const empty = filters =>
  h("p", {}, Object.values(filters).some(Boolean) ? "No event fits the filter." : `Nothing was sent in the last ${LIMITS.deliveriesKeptDays} days.`);

function card(delivery, types, hosts, endpoint) {
  const { id, endpoint_id: endpointId, attempts } = delivery;
  const last = attempts.at(-1);
  const url = hosts.get(endpointId);
  // Many events have the same title: in a list of links, the time tells them apart.
  const title = [titleOf(types, delivery.type), h("span", { class: "unseen" }, " of ", time(delivery.created_at))];
  const tries = attempts.filter(wasSent).length;
  return [
    h(
      endpoint ? "h3" : "h2",
      {},
      endpoint || url ? link(path`#/webhooks/${endpointId}/deliveries/${id}`, title) : title,
      " ",
      deliveryBadge(delivery),
      delivery.test && [" ", badge("calm", "Test")],
    ),
    h(
      "p",
      {},
      time(delivery.created_at),
      !endpoint && [", to ", url ? host(url) : "a deleted webhook"],
      ". ",
      tries > 1 && `Tried ${tries} times. `,
      last && !isAccepted(last) && `${capital(outcome(last))}.`,
      delivery.next_attempt_at && [` The ${last ? "next" : "first"} try is `, due(delivery.next_attempt_at), "."],
    ),
  ];
}
