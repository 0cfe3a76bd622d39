// The screen "Activity": who changed what.

import { get } from "./api.js";
import { code, h, userText } from "./dom.js";
import { count, host, time } from "./format.js";
import { readKeys } from "./key-list.js";
import { link, pages } from "./ui.js";

const PAGE = 50;

const ACTIONS = {
  "key.created": "Key created",
  "key.updated": "Key changed",
  "key.rotated": "Key replaced",
  "key.revoked": "Key revoked",
  "endpoint.created": "Webhook created",
  "endpoint.updated": "Webhook changed",
  "endpoint.deleted": "Webhook deleted",
  "endpoint.secret_rotated": "Secret of a webhook replaced",
  "endpoint.disabled": "Webhook switched off, because events were not accepted",
  "endpoint.test_sent": "Test event sent",
  "delivery.retried": "Event sent again",
  "deliveries.recovered": "Events sent again",
};

export async function activity(_, { signal }) {
  const load = async cursor => {
    const page = await get("/settings/audit", { cursor, limit: PAGE }, signal);
    return { items: page.data, next: page.next_cursor };
  };
  const [workspace, { items: keys }, { endpoints }, first] = await Promise.all([
    get("/settings/workspace", {}, signal), readKeys(null, signal), get("/settings/webhooks", {}, signal), load(null),
  ]);
  const names = new Map([
    ...keys.map(key => [key.id, link(`#/keys/${encodeURIComponent(key.id)}`, userText(key.name))]),
    ...endpoints.map(endpoint => [endpoint.id, link(`#/webhooks/${encodeURIComponent(endpoint.id)}`, host(endpoint.url))]),
  ]);
  const show = line => [
    h("h2", {}, ACTIONS[line.action] ?? line.action),
    h("p", {}, names.get(line.target)?.cloneNode(true) ?? code(line.target), details(line)),
    h("p", { class: "hint" }, time(line.at), " · ", actor(line.actor, workspace.coach_id)),
  ];
  return {
    title: "Activity",
    content: [
      h("p", { class: "lead" }, "Everything that was changed here, newest first."),
      pages({ label: "Activity", first, load, show, empty: h("p", {}, "Nothing was changed yet.") }),
    ],
  };
}

function actor(name, coach) {
  if (name === "service") return "by the service";
  return name === coach ? "by you" : ["by ", userText(name)];
}

function details({ detail }) {
  const words = [];
  if (typeof detail?.name === "string") words.push(" · ", userText(detail.name));
  if (Array.isArray(detail?.changed)) words.push(" · changed: ", detail.changed.join(", "));
  if (Number.isInteger(detail?.deliveries)) words.push(" · ", count(detail.deliveries, "event"));
  if (detail?.new_key_id) words.push(" · ", link(`#/keys/${encodeURIComponent(detail.new_key_id)}`, "the new key"));
  return words;
}
