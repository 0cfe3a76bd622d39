// The events that were sent to all webhooks or wait.

import { eventTypes } from "./event-types.js";
import { deliveryList } from "./delivery-list.js";
import { LIMITS } from "./domain.js";
import { h } from "./dom.js";
import { readWebhooks } from "./webhook-list.js";

export async function deliveries(_, page) {
  const [endpoints, types] = await Promise.all([readWebhooks(page.signal), eventTypes()]);
  const list = await deliveryList({ source: "/settings/deliveries", page, types, endpoints });
  return {
    title: "Sent events",
    parent: { href: "/webhooks", text: "Webhooks" },
    content: [
      h(
        "p",
        { class: "lead" },
        `Everything that was sent to your webhooks or waits, of ${LIMITS.deliveriesKeptDays} days, newest first.`,
      ),
      list,
    ],
  };
}
