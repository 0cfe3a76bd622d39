// One webhook: its problem and the way out, its settings, and the events that were sent to it.

import { get, path } from "./api.js";
import { weekBars } from "./bars.js";
import { copyButton } from "./copy.js";
import { deliveryList } from "./delivery-list.js";
import { LIMITS } from "./domain.js";
import { code, h, userText } from "./dom.js";
import { eventTypes, titleOf } from "./event-types.js";
import { time } from "./format.js";
import { chips, facts, headed, link, linkButton, section } from "./ui.js";
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
  const isOn = endpoint.status === "enabled";
  const settings = section("Settings", factsOf(endpoint, types, oldSecretUntil));
  return {
    title: `Webhook to ${endpoint.label}`,
    heading: ["Webhook to ", called(endpoint), " ", statusBadge(endpoint)],
    parent: { href: "/webhooks", text: "Webhooks" },
    actions: [
      endpoint.status !== "gone" && linkButton(path`#/webhooks/${id}/edit`, "Edit"),
      pauseOrStart(endpoint, page),
      replaceSecret(endpoint, page),
      askToDelete(endpoint, page),
    ],
    content: [
      notice,
      isOn
        ? h(
            "div",
            { class: "pair" },
            settings,
            section("Try it", h("div", { class: "card" }, testPanel(endpoint, types, page))),
          )
        : settings,
      section("The last 7 days", weekBars(hours)),
      headed(
        "Sent events",
        isOn && link(recoverAddress(endpoint), "Send failed events again"),
        h(
          "p",
          { class: "soft" },
          `Everything that was sent or waits, of ${LIMITS.deliveriesKeptDays} days, newest first.`,
        ),
        log,
      ),
    ],
  };
}

function factsOf(endpoint, types, oldSecretUntil) {
  const { url, events, description } = endpoint;
  const address = wholeAddress(url);
  return facts([
    ["Web address", [address, " ", copyButton("The web address", () => url, address, "bare")]],
    ["Note", description && userText(description)],
    ["Events", events.length ? chips(events.map(type => titleOf(types, type))) : "only what your automations send"],
    ["Data", `${MODES[endpoint.payload_mode][0]} (cannot be changed)`],
    ["Last 24 hours", lastDay(endpoint.last_24h)],
    ["Secret", oldSecretUntil && ["Replaced. The old one works until ", time(oldSecretUntil), "."]],
    ["Created", time(endpoint.created_at)],
    ["ID", code(endpoint.id)],
  ]);
}
