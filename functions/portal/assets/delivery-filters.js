// The filters of a list of deliveries. They are kept in the address.

import { h } from "./dom.js";
import { field, form } from "./forms.js";
import { button } from "./ui.js";
import { DELIVERY_CHOICES, hostName } from "./webhook-status.js";

/** The filters by the names that the API gives them. */
export const FILTERS = ["status", "type", "endpoint_id", "webhook_id", "since", "until"];

/**
 * The form that filters a list. `apply(filters)` shows the list anew; `endpoints`: all webhooks, if the list is of all.
 */
export function filterForm({ filters, types, endpoints, apply, page }) {
  const any = [["", "All"]];
  const fields = [
    field({
      name: "status",
      label: "Status",
      tag: "select",
      options: [...any, ...DELIVERY_CHOICES],
      value: filters.status ?? "",
    }),
    field({
      name: "type",
      label: "Event",
      tag: "select",
      options: [...any, ...types.map(({ type, title }) => [type, title])],
      value: filters.type ?? "",
    }),
    endpoints &&
      field({
        name: "endpoint_id",
        label: "Webhook",
        tag: "select",
        value: filters.endpoint_id ?? "",
        options: [
          ...any,
          ...endpoints.map(({ id, url, description }) => [id, description ? `${hostName(url)} (${description})` : hostName(url)]),
        ],
      }),
    dateField("since", "From", filters.since),
    dateField("until", "Before", filters.until),
    field({
      name: "webhook_id",
      label: "Id of the event",
      hint: "It begins with evt_. Whoever runs the other system knows it.",
      value: filters.webhook_id ?? "",
      maxlength: 100,
      spellcheck: "false",
    }),
  ];
  const isUsed = Object.values(filters).some(Boolean);
  const clear = button("Show all", () => {
    remember({});
    return page.refresh();
  });
  return h(
    "details",
    { class: "filters", open: isUsed },
    h("summary", {}, "Filter"),
    form({ submit: "Apply the filter", kind: null, cancel: clear, send: apply }, h("div", { class: "row" }, fields)),
  );
}

/** A field for a time in the browser's zone; its value is the instant. */
const dateField = (name, label, iso) => {
  const node = field({
    name,
    label,
    type: "datetime-local",
    value: iso ? local(iso) : "",
    read: () => instant(node.querySelector("input").value),
  });
  return node;
};

/** Returns the instant of a local date and time, or null. */
export const instant = text => (text ? new Date(text).toISOString() : null);

/** Returns an instant as a local date and time, as `datetime-local` takes it. */
export function local(iso) {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return "";
  return new Date(time - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Keeps the filters in the address, so that "back" returns to the same list. */
export function remember(filters) {
  const used = Object.entries(filters).filter(([name, value]) => FILTERS.includes(name) && value);
  const [address] = location.hash.split("?");
  history.replaceState(null, "", used.length ? `${address}?${new URLSearchParams(used)}` : address);
}
