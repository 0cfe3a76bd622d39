// A list of deliveries with its filters, read page by page.

import { announce } from "./announce.js";
import { getPage, path } from "./api.js";
import { titleOf } from "./event-types.js";
import { FILTERS, filterForm, remember } from "./delivery-filters.js";
import { fill, h } from "./dom.js";
import { ago, count, host, time } from "./format.js";
import { isAccepted, outcome } from "./outcome.js";
import { badge, link, pages } from "./ui.js";
import { deliveryBadge } from "./webhook-status.js";

const PAGE = 50;

/**
 * The deliveries of `source` (a path of the API) with the filters of the address. `endpoints`: all webhooks, if the
 * list is of all; `endpoint`: the one webhook, if it is of one. Returns the node and the first `items`.
 */
export async function deliveryList({ source, page, types, endpoints = null, endpoint = null }) {
  const filters = Object.fromEntries(FILTERS.map(name => [name, page.query.get(name)]));
  const results = h("div", {});
  const first = await load(source, filters, page);
  const hosts = new Map((endpoints ?? []).map(({ id, url }) => [id, url]));
  const show = delivery => card(delivery, types, hosts, endpoint);
  const list = (used, read) =>
    pages({
      label: "Deliveries",
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
    announce(
      read.next ? `${read.items.length} deliveries, and there are more.` : count(read.items.length, "delivery", "deliveries"),
    );
  };
  return { node: h("div", {}, filterForm({ filters, types, endpoints, apply, page }), results), items: first.items };
}

const load = (source, query, { signal }) => getPage(source, { ...query, limit: PAGE }, signal);

const empty = filters =>
  h("p", {}, Object.values(filters).some(Boolean) ? "No delivery fits the filter." : "Nothing was sent in the last 30 days.");

function card(delivery, types, hosts, endpoint) {
  const { id, endpoint_id: endpointId, attempts } = delivery;
  const last = attempts.at(-1);
  const url = hosts.get(endpointId);
  const title = titleOf(types, delivery.type);
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
      attempts.length > 1 && `${count(attempts.length, "attempt")}. `,
      last && !isAccepted(last) && `${capital(outcome(last))}.`,
      delivery.next_attempt_at && [" Sent again ", ago(delivery.next_attempt_at), "."],
    ),
  ];
}

const capital = text => text.charAt(0).toUpperCase() + text.slice(1);
