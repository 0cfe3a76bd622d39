// A list of deliveries with its filters, read page by page.

import { announce } from "./announce.js";
import { get, path } from "./api.js";
import { titleOf } from "./event-types.js";
import { fill, h } from "./dom.js";
import { field, form } from "./forms.js";
import { ago, count, host, time } from "./format.js";
import { isAccepted, outcome } from "./outcome.js";
import { badge, button, link, pages } from "./ui.js";
import { DELIVERY_CHOICES, deliveryBadge, hostName } from "./webhook-status.js";

const FILTERS = ["status", "type", "endpoint_id", "webhook_id", "since", "until"];
const PAGE = 50;

/**
 * The deliveries of `source` (a path of the API) with the filters of the address. `endpoints`: all webhooks, if the list
 * is of all; `of`: the one webhook, if it is of one. Returns the node and the first `items`.
 */
export async function deliveryList({ source, page, types, endpoints = null, of = null }) {
  const filters = Object.fromEntries(FILTERS.map(name => [name, page.query.get(name)]));
  const results = h("div", {});
  const first = await load(source, filters, page);
  const hosts = new Map((endpoints ?? []).map(({ id, url }) => [id, url]));
  const show = delivery => card(delivery, types, hosts, of);
  const list = (used, read) => pages({ label: "Deliveries", first: read, load: cursor => load(source, { ...used, cursor }, page), show, empty: empty(used) });
  fill(results, list(filters, first));
  const apply = async used => {
    const read = await load(source, used, page);
    remember(used);
    fill(results, list(used, read));
    announce(read.next ? `${read.items.length} deliveries, and there are more.` : count(read.items.length, "delivery", "deliveries"));
  };
  return { node: h("div", {}, filterForm({ filters, types, endpoints, apply, page }), results), items: first.items };
}

async function load(source, query, { signal }) {
  const { data, next_cursor: next } = await get(source, { ...query, limit: PAGE }, signal);
  return { items: data, next };
}

function filterForm({ filters, types, endpoints, apply, page }) {
  const any = [["", "All"]];
  const fields = [
    field({ name: "status", label: "Status", tag: "select", options: [...any, ...DELIVERY_CHOICES], value: filters.status ?? "" }),
    field({ name: "type", label: "Event", tag: "select", options: [...any, ...types.map(({ type, title }) => [type, title])], value: filters.type ?? "" }),
    endpoints && field({ name: "endpoint_id", label: "Webhook", tag: "select", value: filters.endpoint_id ?? "",
      options: [...any, ...endpoints.map(({ id, url, description }) => [id, description ? `${hostName(url)} (${description})` : hostName(url)])] }),
    dateField("since", "From", filters.since),
    dateField("until", "Before", filters.until),
    field({ name: "webhook_id", label: "Id of the event (evt_…)", value: filters.webhook_id ?? "", maxlength: 100, spellcheck: "false" }),
  ];
  const isUsed = Object.values(filters).some(Boolean);
  const clear = button("Show all", () => {
    remember({});
    return page.refresh();
  });
  return h("details", { class: "filters", open: isUsed }, h("summary", {}, "Filter"),
    form({ submit: "Apply the filter", kind: null, cancel: clear, send: apply }, h("div", { class: "row" }, fields)));
}

/** A field for a time in the browser's zone; its value is the instant. */
const dateField = (name, label, iso) => {
  const node = field({ name, label, type: "datetime-local", value: iso ? local(iso) : "", read: () => instant(node.querySelector("input").value) });
  return node;
};

/** Returns the instant of a local date and time, or null. */
export const instant = text => text ? new Date(text).toISOString() : null;

/** Returns an instant as a local date and time, as `datetime-local` takes it. */
export function local(iso) {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return "";
  return new Date(time - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Keeps the filters in the address, so that "back" returns to the same list. */
function remember(filters) {
  const used = Object.entries(filters).filter(([name, value]) => FILTERS.includes(name) && value);
  const [place] = location.hash.split("?");
  history.replaceState(null, "", used.length ? `${place}?${new URLSearchParams(used)}` : place);
}

const empty = filters => h("p", {}, Object.values(filters).some(Boolean) ? "No delivery fits the filter." : "Nothing was sent in the last 30 days.");

function card(delivery, types, hosts, of) {
  const { id, endpoint_id: endpoint, attempts } = delivery;
  const last = attempts.at(-1);
  const url = hosts.get(endpoint);
  return [
    h(of ? "h3" : "h2", {}, link(path`#/webhooks/${endpoint ?? of?.id}/deliveries/${id}`, titleOf(types, delivery.type)), " ", deliveryBadge(delivery), delivery.test && [" ", badge("calm", "Test")]),
    h("p", {}, time(delivery.created_at), !of && [", to ", url ? host(url) : "a deleted webhook"], ". ", attempts.length > 1 && `${count(attempts.length, "attempt")}. `,
      last && !isAccepted(last) && `${capital(outcome(last))}.`,
      delivery.next_attempt_at && [" Sent again ", ago(delivery.next_attempt_at), "."]),
  ];
}

const capital = text => text.charAt(0).toUpperCase() + text.slice(1);
