// One webhook: its problem and the way out, its settings, and the events that were sent to it.

import { get, path } from "./api.js";
import { weekBars } from "./bars.js";
import { eventTypes, titleOf } from "./event-types.js";
import { deliveryList } from "./delivery-list.js";
import { LIMITS } from "./domain.js";
import { h, userText } from "./dom.js";
import { list, time } from "./format.js";
import { facts, link, section } from "./ui.js";
import { askToDelete, pauseOrStart } from "./webhook-actions.js";
import { banner } from "./webhook-banner.js";
import { called, readWebhook } from "./webhook-list.js";
import { endOfOldSecret, replaceSecret } from "./webhook-secret.js";
import { recoverAddress } from "./webhook-trouble.js";
import { MODES, lastDay, statusBadge, wholeAddress } from "./webhook-status.js";
import { testPanel } from "./webhook-test.js";

const WEEK_HOURS = 7 * 24;

export async function webhook({ id }, page) {
  const base = path`/settings/webhooks/${id}`;
  const [endpoint, types] = await Promise.all([readWebhook(id, page.signal), eventTypes()]);
  const [notice, { data: hours }, log, oldSecretUntil] = await Promise.all([
    banner(endpoint, page),
    get(`${base}/activity`, { hours: WEEK_HOURS }, page.signal),
    deliveryList({ source: `${base}/deliveries`, page, types, endpoint }),
    endOfOldSecret(endpoint, page.signal),
  ]);
  return {
    title: `Webhook to ${endpoint.label}`,
    heading: ["Webhook to ", called(endpoint), " ", statusBadge(endpoint)],
    parent: { href: "/webhooks", text: "Webhooks" },
    content: [
      notice,
      settings(endpoint, types, oldSecretUntil, page),
      endpoint.status === "enabled" && section("Try it", testPanel(endpoint, types, page)),
      section("The last 7 days", weekBars(hours)),
      section(
        "Sent events",
        h(
          "p",
          {},
          `Everything that was sent or waits, of ${LIMITS.deliveriesKeptDays} days, newest first. `,
          endpoint.status === "enabled" && link(recoverAddress(endpoint), "Send failed events again"),
        ),
        log,
      ),
    ],
  };
}

function settings(endpoint, types, oldSecretUntil, page) {
  const events = endpoint.events.map(type => titleOf(types, type));
  return section(
    "Settings",
    facts([
      ["Web address", wholeAddress(endpoint.url)],
      ["Note", endpoint.description && userText(endpoint.description)],
      ["Events", events.length ? list(events) : "only what your automations send"],
      ["Data", `${MODES[endpoint.payload_mode][0]} (cannot be changed)`],
      ["Last 24 hours", lastDay(endpoint.last_24h)],
      ["Secret", oldSecretUntil && ["Replaced. The old one works until ", time(oldSecretUntil), "."]],
      ["Created", time(endpoint.created_at)],
    ]),
    h(
      "p",
      { class: "buttons" },
      endpoint.status !== "gone" && h("a", { class: "button", href: path`#/webhooks/${endpoint.id}/edit` }, "Edit"),
      pauseOrStart(endpoint, page),
      replaceSecret(endpoint, page),
      askToDelete(endpoint, page),
    ),
  );
}
