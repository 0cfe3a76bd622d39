// The screen "Activity": who changed what.

import { get, getPage } from "./api.js";
import { code, h, userText } from "./dom.js";
import { eventTypes, titleOf } from "./event-types.js";
import { count, host, list, time } from "./format.js";
import { readKeys } from "./key-list.js";
import { link, pages } from "./ui.js";

const PAGE = 50;

// The fields of changes, in words.
const FIELDS = {
  name: "name",
  expires_at: "end",
  url: "address",
  events: "events",
  description: "description",
  enabled: "on or off",
};

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
  const load = cursor => getPage("/settings/audit", { cursor, limit: PAGE }, signal);
  const [workspace, { items: keys }, { endpoints }, types, first] = await Promise.all([
    get("/settings/workspace", {}, signal),
    readKeys(null, signal),
    get("/settings/webhooks", {}, signal),
    eventTypes(),
    load(null),
  ]);
  const names = new Map([
    ...keys.map(key => [key.id, link(`#/keys/${encodeURIComponent(key.id)}`, userText(key.name))]),
    ...endpoints.map(endpoint => [
      endpoint.id,
      link(`#/webhooks/${encodeURIComponent(endpoint.id)}`, host(endpoint.url)),
    ]),
  ]);
  const show = line => [
    h("h2", {}, ACTIONS[line.action] ?? line.action),
    h("p", {}, names.get(line.target)?.cloneNode(true) ?? targetOfDeleted(line), details(line, types)),
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

// The name of something that is not in the lists: deleted, or a delivery.
function targetOfDeleted({ target, detail }) {
  if (detail.endpoint_id)
    return link(
      `#/webhooks/${encodeURIComponent(detail.endpoint_id)}/deliveries/${encodeURIComponent(target)}`,
      "The event",
    );
  const name = detail.name ?? detail.host;
  return name ? userText(name) : code(target);
}

function details({ detail }, types) {
  const words = [];
  if (detail.changed?.length) words.push(`changed: ${list(detail.changed.map(field => FIELDS[field] ?? field))}`);
  if (detail.type) words.push(titleOf(types, detail.type));
  if (detail.status) words.push(detail.status === "enabled" ? "on afterwards" : "off afterwards");
  if (Number.isInteger(detail.deliveries)) words.push(count(detail.deliveries, "event"));
  if (detail.since) words.push(["since ", time(detail.since)]);
  if (detail.new_key_id)
    words.push(["replaced by ", link(`#/keys/${encodeURIComponent(detail.new_key_id)}`, "this key")]);
  return words.map(word => [" · ", word]);
}
