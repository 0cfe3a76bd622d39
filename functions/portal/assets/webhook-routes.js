// The screens about webhooks and events.

import { deliveries } from "./deliveries.js";
import { deliveryScreen } from "./delivery.js";
import { events } from "./events.js";
import { recover } from "./recover.js";
import { verify } from "./verify.js";
import { webhook } from "./webhook.js";
import { createWebhook } from "./webhook-create.js";
import { editWebhook } from "./webhook-edit.js";
import { webhooks } from "./webhooks.js";

export const webhookRoutes = [
  ["/webhooks", webhooks],
  ["/webhooks/new", createWebhook],
  ["/webhooks/:id", webhook],
  ["/webhooks/:id/edit", editWebhook],
  ["/webhooks/:id/recover", recover],
  ["/webhooks/:id/deliveries/:delivery", deliveryScreen],
  ["/deliveries", deliveries],
  ["/events", events],
  ["/verify", verify],
];
