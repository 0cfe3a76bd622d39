// The deliveries of all webhooks.

import { get } from "./api.js";
import { eventTypes } from "./event-types.js";
import { deliveryList } from "./delivery-list.js";
import { h } from "./dom.js";

export async function deliveries(_, page) {
  const [{ endpoints }, types] = await Promise.all([get("/settings/webhooks", {}, page.signal), eventTypes()]);
  const { node } = await deliveryList({ source: "/settings/deliveries", page, types, endpoints });
  return {
    title: "Deliveries",
    parent: { href: "/webhooks", text: "Webhooks" },
    content: [h("p", {}, "Everything that was sent to your webhooks or is waiting, for 30 days, newest first."), node],
  };
}
