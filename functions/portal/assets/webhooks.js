// The list of webhooks, those with problems first.

import { get } from "./api.js";
import { h } from "./dom.js";
import { eventTypes } from "./event-types.js";
import { empty, link, linkButton, notice } from "./ui.js";
import { readWebhooks } from "./webhook-list.js";
import { hasProblem } from "./webhook-status.js";
import { webhookTable } from "./webhook-table.js";

export async function webhooks(_, { signal }) {
  const [endpoints, workspace, types] = await Promise.all([
    readWebhooks(signal),
    get("/settings/workspace", {}, signal),
    eventTypes(),
  ]);
  const { count: taken, max } = workspace.endpoints;
  const sorted = endpoints.toSorted((one, other) => hasProblem(other) - hasProblem(one));
  const create = linkButton("#/webhooks/new", "Create a webhook", "main");
  return {
    title: "Webhooks",
    actions: taken < max && endpoints.length > 0 && create,
    content: [
      intro(),
      taken >= max && full(max),
      endpoints.length ? webhookTable(sorted, types) : empty("hook", "You have no webhook yet", create),
      h("p", { class: "links" }, link("#/deliveries", "All sent events"), link("#/events", "Which events there are")),
    ],
  };
}

const intro = () =>
  h(
    "p",
    { class: "lead" },
    "When something happens with your clients, a webhook tells another system at once: your ",
    "booking tool, a spreadsheet, an automation service. It sends the event to a web address that the other system gives you.",
  );

const full = max =>
  notice(
    "warn",
    "You have as many webhooks as you can have",
    h("p", {}, `Delete one of the ${max} that you do not use. Then you can create another.`),
  );
