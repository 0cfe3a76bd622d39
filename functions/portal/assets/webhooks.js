// The list of webhooks, those with problems first.

import { get, path } from "./api.js";
import { eventTypes, titleOf } from "./event-types.js";
import { h, userText } from "./dom.js";
import { ago, due, list, time } from "./format.js";
import { cards, facts, link, notice } from "./ui.js";
import { called, readWebhooks } from "./webhook-list.js";
import { MODES, hasProblem, isSilent, lastDay, statusBadge } from "./webhook-status.js";

export async function webhooks(_, { signal }) {
  const [endpoints, workspace, types] = await Promise.all([
    readWebhooks(signal),
    get("/settings/workspace", {}, signal),
    eventTypes(),
  ]);
  const sorted = endpoints.toSorted((one, other) => hasProblem(other) - hasProblem(one));
  return {
    title: "Webhooks",
    content: [
      intro(),
      creation(workspace),
      endpoints.length
        ? cards(
            "Webhooks",
            sorted.map(one => card(one, types)),
          )
        : empty(),
      more(),
    ],
  };
}

const OFF = { by_hand: "Paused", failing: "Stopped", gone: "Gone" };

const intro = () =>
  h(
    "p",
    { class: "lead" },
    "When something happens with your clients, a webhook tells another system at once: your ",
    "booking tool, a spreadsheet, an automation service. It sends the event to a web address that the other system gives you.",
  );

const empty = () => h("p", { class: "empty" }, "You have no webhook yet.");

function creation({ endpoints: { count: taken, max } }) {
  if (taken < max) return h("p", {}, h("a", { class: "button main", href: "#/webhooks/new" }, "Create a webhook"));
  return notice(
    "warn",
    "You have as many webhooks as you can have",
    h("p", {}, `Delete one of the ${max} that you do not use. Then you can create another.`),
  );
}

const more = () => h("p", {}, link("#/deliveries", "All sent events"), " · ", link("#/events", "Which events there are"));

function card(endpoint, types) {
  return [
    h("h2", {}, link(path`#/webhooks/${endpoint.id}`, called(endpoint)), " ", statusBadge(endpoint)),
    endpoint.description && h("p", {}, userText(endpoint.description)),
    facts([
      [
        "Events",
        endpoint.events.length ? list(endpoint.events.map(type => titleOf(types, type))) : "only what your automations send",
      ],
      ["Data", MODES[endpoint.payload_mode][0]],
      ["Last 24 hours", lastDay(endpoint.last_24h)],
      ["Next try", isSilent(endpoint) && [time(endpoint.breaker_open_until), " (", due(endpoint.breaker_open_until), ")"]],
      ["Failing since", endpoint.status === "enabled" && endpoint.failing_since && ago(endpoint.failing_since)],
      [`${OFF[endpoint.disabled_reason_code]} since`, endpoint.disabled_at && ago(endpoint.disabled_at)],
    ]),
  ];
}
