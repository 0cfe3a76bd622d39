// The screen "Activity": who changed what.

import { get, getPage } from "./api.js";
import { code, h, userText } from "./dom.js";
import { eventTypes, titleOf } from "./event-types.js";
import { count, host, list, time } from "./format.js";
import { readKeys } from "./key-list.js";
import { pages } from "./pages.js";
import * as session from "./session.js";
import { link } from "./ui.js";

const PAGE = 50;

// The fields of changes, in words.
const FIELDS = {
  name: "name",
  expires_at: "how long it works",
  url: "address",
  events: "events",
  description: "description",
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
  "endpoint.disabled": "Webhook stopped, because nothing got through",
  "endpoint.test_sent": "Test event sent",
  "delivery.retried": "Event sent again",
  "deliveries.recovered": "Events sent again",
};

const SWITCHED = { enabled: "Webhook started", disabled: "Webhook paused" };

export async function activity(_, { signal }) {
  const load = cursor => getPage("/settings/audit", { cursor, limit: PAGE }, signal);
  const [{ items: keys }, { endpoints }, types, first] = await Promise.all([
    readKeys(null, signal),
    get("/settings/webhooks", {}, signal),
    eventTypes(),
    load(null),
  ]);
  const own = ownSubject();
  const names = new Map([
    ...keys.map(key => [key.id, link(`#/keys/${encodeURIComponent(key.id)}`, userText(key.name))]),
    ...endpoints.map(endpoint => [
      endpoint.id,
      link(`#/webhooks/${encodeURIComponent(endpoint.id)}`, host(endpoint.url)),
    ]),
  ]);
  const show = line => [
    h("h2", {}, title(line)),
    h("p", {}, names.get(line.target)?.cloneNode(true) ?? targetOfDeleted(line, types), details(line, types)),
    h("p", { class: "hint" }, time(line.at), " · ", actor(line.actor, own)),
  ];
  return {
    title: "Activity",
    content: [
      h("p", { class: "lead" }, "Everything that was changed here, newest first."),
      pages({ label: "Activity", first, load, show, empty: h("p", {}, "Nothing was changed yet.") }),
    ],
  };
}

function title({ action, detail }) {
  if (action === "endpoint.disabled" && detail.status === "gone")
    return "Webhook ended, because the other system said that the address is gone for good";
  if (action === "endpoint.updated" && detail.changed?.includes("enabled"))
    return SWITCHED[detail.status];
  return ACTIONS[action] ?? action;
}

function actor(name, own) {
  if (name === "service") return "by the service";
  return name === own ? "by you" : ["by somebody else: ", userText(name)];
}

/** Returns the subject of the session, as the trail names it. It need not be the id of the coach. */
function ownSubject() {
  try {
    const [, claims] = session.current().split(".");
    const bytes = Uint8Array.from(atob(claims.replaceAll("-", "+").replaceAll("_", "/")), byte => byte.charCodeAt(0));
    // The service takes a number and a list of one, too.
    return [JSON.parse(new TextDecoder().decode(bytes)).sub].flat().join(" ");
  } catch {
    // The token has another form.
    return null;
  }
}

// The name of something that is not in the lists: deleted, or a delivery.
function targetOfDeleted({ target, detail }, types) {
  if (detail.endpoint_id)
    return link(
      `#/webhooks/${encodeURIComponent(detail.endpoint_id)}/deliveries/${encodeURIComponent(target)}`,
      titleOf(types, detail.type),
    );
  const name = detail.name ?? detail.host;
  return name ? userText(name) : code(target);
}

function details({ action, detail }, types) {
  const words = [];
  const changed = detail.changed?.filter(field => field !== "enabled") ?? [];
  if (changed.length) words.push(`changed: ${list(changed.map(field => FIELDS[field] ?? field))}`);
  if (action === "endpoint.test_sent") words.push(titleOf(types, detail.type));
  if (Number.isInteger(detail.deliveries)) words.push(count(detail.deliveries, "event"));
  if (detail.since) words.push(["since ", time(detail.since)]);
  if (detail.new_key_id)
    words.push(link(`#/keys/${encodeURIComponent(detail.new_key_id)}`, "The new key ", userText(`“${detail.name}”`)));
  return words.map(word => [" · ", word]);
}
