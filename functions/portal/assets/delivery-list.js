// A list of events that were sent or wait, with its filters.

import { path } from "./api.js";
import { titleOf } from "./event-types.js";
import { LIMITS } from "./domain.js";
import { code, h } from "./dom.js";
import { choiceFilter, filteredList, timeFilters } from "./filtered-list.js";
import { capital, due, hostName, number, time } from "./format.js";
import { field } from "./forms.js";
import { outcome, wasSent } from "./outcome.js";
import { badge, empty, link } from "./ui.js";
import { called } from "./webhook-list.js";
import { DELIVERY_CHOICES, deliveryBadge } from "./webhook-status.js";

// The filters by the names that the API gives them.
const FILTERS = ["status", "type", "endpoint_id", "webhook_id", "since", "until"];
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
export function deliveryList({ source, page, types, endpoints = null, endpoint = null }) {
  const known = new Map((endpoint ? [endpoint] : endpoints).map(one => [one.id, one]));
  return filteredList({
    source,
    page,
    names: FILTERS,
    fields: filters => filterFields(filters, types, endpoints),
    noun: "event",
    lookedAt: LIMITS.lookedAt,
    empty: empty(
      "hook",
      `Nothing was sent in the last ${LIMITS.deliveriesKeptDays} days`,
      endpoint?.status === "enabled" &&
        h("p", { class: "soft" }, "Send a test event above, to see that the other system gets it."),
    ),
    label: "Sent events",
    columns: COLUMNS.filter(([title]) => title !== "Webhook" || !endpoint),
    show: delivery => cells(delivery, types, known.get(delivery.endpoint_id), !endpoint),
  });
}

/** The fields of the filters. `endpoints`: all webhooks, if the list is of all. */
const filterFields = (filters, types, endpoints) => [
  choiceFilter("status", "Status", DELIVERY_CHOICES, filters),
  choiceFilter(
    "type",
    "Event",
    types.map(({ type, title }) => [type, title]),
    filters,
  ),
  endpoints &&
    choiceFilter(
      "endpoint_id",
      "Webhook",
      endpoints.map(endpoint => [endpoint.id, withNote(endpoint)]),
      filters,
    ),
  timeFilters(filters),
  field({
    name: "webhook_id",
    label: "Id of the event",
    hint: "It begins with evt_. Whoever runs the other system knows it.",
    value: filters.webhook_id ?? "",
    maxlength: 100,
    spellcheck: "false",
  }),
];

/** What a webhook is called, with its note in any case. */
const withNote = ({ label, url, description }) =>
  description && label === hostName(url) ? `${label} (${description})` : label;

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
