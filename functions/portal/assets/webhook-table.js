// Webhooks as a table.

import { path } from "./api.js";
import { h, userText } from "./dom.js";
import { titleOf } from "./event-types.js";
import { ago, due, list, time } from "./format.js";
import { table } from "./table.js";
import { link } from "./ui.js";
import { called } from "./webhook-list.js";
import { MODES, isSilent, lastDay, statusBadge } from "./webhook-status.js";

const OFF = { by_hand: "Paused", failing: "Stopped", gone: "Gone" };

/** A table of webhooks, with their notes and events if the `types` of events are given. */
export function webhookTable(endpoints, types = null) {
  const events = ({ events }) =>
    events.length ? list(events.map(type => titleOf(types, type))) : "only what your automations send";
  return h(
    "div",
    { class: "card" },
    table({
      "aria-label": "Webhooks",
      columns: [["Webhook"], ["Status", "sign"], ...(types ? [["Events"]] : []), ["Last 24 hours"], ["Data"]],
      rows: endpoints.map(endpoint => [
        [link(path`#/webhooks/${endpoint.id}`, called(endpoint)), types && note(endpoint)],
        statusBadge(endpoint),
        ...(types ? [events(endpoint)] : []),
        [lastDay(endpoint.last_24h), times(endpoint)],
        MODES[endpoint.payload_mode][0],
      ]),
    }),
  );
}

/** The note of a webhook, unless its name has it. */
const note = ({ label, description }) =>
  !label.endsWith(`(${description})`) && hint(description && userText(description));

const hint = content => content && h("span", { class: "hint" }, content);

/** Since when the webhook fails or gets nothing, and when the next try is. */
const times = endpoint => [
  endpoint.status === "enabled" && endpoint.failing_since && hint(["Failing since ", ago(endpoint.failing_since)]),
  isSilent(endpoint) &&
    hint(["Next try ", time(endpoint.breaker_open_until), " (", due(endpoint.breaker_open_until), ")"]),
  endpoint.disabled_at && hint([`${OFF[endpoint.disabled_reason_code]} since `, ago(endpoint.disabled_at)]),
];
