// The screen "Activity": who changed what.

import { getPage, path } from "./api.js";
import { code, h, userText } from "./dom.js";
import { eventTypes, titleOf } from "./event-types.js";
import { count, list, time } from "./format.js";
import { readKeys } from "./key-list.js";
import { pages } from "./pages.js";
import * as session from "./session.js";
import { empty, link } from "./ui.js";
import { called, readWebhooks } from "./webhook-list.js";

const PAGE = 50;
const COLUMNS = [["What", "wide"], ["About"], ["Details"], ["When", "number"], ["By", "wide"]];

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
  "dead.redriven": "Something that had failed was tried again",
  "dead.dropped": "Something that had failed was given up",
  "client.exported": "Data of a client exported",
  "counts.rebuilt": "Number of clients corrected",
};

const SWITCHED = { enabled: "Webhook started", disabled: "Webhook paused" };

export async function activity(_, { signal }) {
  const load = cursor => getPage("/settings/audit", { cursor, limit: PAGE }, signal);
  const [{ items: keys }, endpoints, types, first] = await Promise.all([
    readKeys(null, signal),
    readWebhooks(signal),
    eventTypes(),
    load(null),
  ]);
  const own = ownSubject();
  const known = new Map([
    ...keys.map(key => [key.id, (...words) => link(path`#/keys/${key.id}`, ...words, userText(key.label))]),
    ...endpoints.map(endpoint => [
      endpoint.id,
      (...words) => link(path`#/webhooks/${endpoint.id}`, ...words, called(endpoint)),
    ]),
  ]);
  const show = line => [
    title(line),
    known.get(line.target)?.() ?? other(line, types, known),
    details(line, types, known),
    time(line.at),
    actor(line.actor, own),
  ];
  return {
    title: "Activity",
    content: [
      h("p", { class: "lead" }, "Everything that was changed here, newest first."),
      pages({
        label: "Activity",
        columns: COLUMNS,
        first,
        load,
        show,
        empty: empty("repeat", "Nothing was changed yet"),
      }),
    ],
  };
}

function title({ action, detail }) {
  if (action === "endpoint.disabled" && detail.status === "gone")
    return "Webhook ended, because the other system said that the address is gone for good";
  if (action === "endpoint.updated" && detail.changed?.includes("enabled")) return SWITCHED[detail.status];
  return ACTIONS[action] ?? action;
}

function actor(name, own) {
  if (name === "service") return "by the service";
  if (name.startsWith("operator:")) return "by the service's operators";
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

// The name of something that is not in the lists: an event, a key of a later page, or a deleted webhook. Of the last,
// only the id tells two at one host apart.
function other({ target, detail }, types, known) {
  const { endpoint_id: endpoint } = detail;
  if (endpoint) {
    const event = link(path`#/webhooks/${endpoint}/deliveries/${target}`, titleOf(types, detail.type));
    return [event, " to ", known.get(endpoint)?.() ?? code(endpoint)];
  }
  if (detail.name) return userText(detail.name);
  return [detail.host && [userText(detail.host), ", deleted: "], code(target)];
}

function details({ action, detail }, types, known) {
  const words = [];
  const changed = detail.changed?.filter(field => field !== "enabled") ?? [];
  if (changed.length) words.push(`changed: ${list(changed.map(field => FIELDS[field] ?? field))}`);
  if (action === "endpoint.test_sent") words.push(titleOf(types, detail.type));
  if (Number.isInteger(detail.deliveries)) words.push(count(detail.deliveries, "event"));
  if (detail.since) words.push(["since ", time(detail.since)]);
  const { new_key_id: successor } = detail;
  if (successor) words.push(known.get(successor)?.("The new key ") ?? link(path`#/keys/${successor}`, "The new key"));
  if (detail.reason) words.push(["reason: ", userText(detail.reason)]);
  return words.map((word, at) => [at > 0 && " · ", word]);
}
