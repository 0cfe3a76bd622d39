// The filters of a list of deliveries. They are kept in the address.

import { timeField } from "./date-field.js";
import { h } from "./dom.js";
import { hostName } from "./format.js";
import { field, form } from "./forms.js";
import { button } from "./ui.js";
import { DELIVERY_CHOICES } from "./webhook-status.js";

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
        options: [...any, ...endpoints.map(endpoint => [endpoint.id, withNote(endpoint)])],
      }),
    timeField({ name: "since", label: "From", iso: filters.since }),
    timeField({ name: "until", label: "Before", iso: filters.until }),
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

/** What a webhook is called, with its note in any case. */
const withNote = ({ label, url, description }) => (description && label === hostName(url) ? `${label} (${description})` : label);

/** Keeps the filters in the address, so that "back" returns to the same list. */
export function remember(filters) {
  const used = Object.entries(filters).filter(([name, value]) => FILTERS.includes(name) && value);
  const [address] = location.hash.split("?");
  history.replaceState(null, "", used.length ? `${address}?${new URLSearchParams(used)}` : address);
}
