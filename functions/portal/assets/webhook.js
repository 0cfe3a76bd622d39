// One webhook: its problem and the way out, its settings, and its deliveries.

import { get, path } from "./api.js";
import { eventTypes, titleOf } from "./event-types.js";
import { deliveryList } from "./delivery-list.js";
import { h, userText } from "./dom.js";
import { host, list, time } from "./format.js";
import { facts, link, section } from "./ui.js";
import { askToDelete, pauseOrStart, replaceSecret } from "./webhook-actions.js";
import { banner } from "./webhook-banner.js";
import { MODES, hostName, lastDay, statusBadge, wholeAddress } from "./webhook-status.js";
import { testPanel } from "./webhook-test.js";

export async function webhook({ id }, page) {
  const base = path`/settings/webhooks/${id}`;
  const [endpoint, types] = await Promise.all([get(base, {}, page.signal), eventTypes()]);
  const log = await deliveryList({ source: `${base}/deliveries`, page, types, endpoint });
  return {
    title: `Webhook to ${hostName(endpoint.url)}`,
    heading: ["Webhook to ", host(endpoint.url), " ", statusBadge(endpoint)],
    parent: { href: "/webhooks", text: "Webhooks" },
    content: [
      banner(endpoint, log.items, page),
      settings(endpoint, types, page),
      endpoint.status === "enabled" && section("Try it", testPanel(endpoint, types, page)),
      section(
        "Deliveries",
        h(
          "p",
          {},
          "Everything that was sent or is waiting, for 30 days, newest first. ",
          endpoint.status === "enabled" && link(path`#/webhooks/${id}/recover`, "Send missed events again"),
        ),
        log.node,
      ),
    ],
  };
}

function settings(endpoint, types, page) {
  const events = endpoint.events.map(type => titleOf(types, type));
  return section(
    "Settings",
    facts([
      ["Web address", wholeAddress(endpoint.url)],
      ["Note", endpoint.description && userText(endpoint.description)],
      ["Events", events.length ? list(events) : "only what your automations send"],
      ["Data", `${MODES[endpoint.payload_mode][0]} (cannot be changed)`],
      ["Last 24 hours", lastDay(endpoint.last_24h)],
      ["Created", time(endpoint.created_at)],
    ]),
    h(
      "p",
      { class: "buttons" },
      h("a", { class: "button", href: path`#/webhooks/${endpoint.id}/edit` }, "Edit"),
      pauseOrStart(endpoint, page),
      replaceSecret(endpoint),
      askToDelete(endpoint),
    ),
  );
}
