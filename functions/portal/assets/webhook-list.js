// Reads webhooks. Each has a `label`: its host, and as much more as tells it from the coach's other webhooks.

import { get } from "./api.js";
import { userText } from "./dom.js";
import { hostName, timeText } from "./format.js";
import { labelled, shortened } from "./labels.js";
import { ApiError } from "./request.js";

const MOST_OF_HOST = 60;
const MOST_OF_NOTE = 40;
const MOST_OF_PATH = 48;

const host = ({ url }) => shortened(hostName(url), MOST_OF_HOST);

function place({ url }) {
  const { pathname, search } = new URL(url);
  return host({ url }) + shortened(pathname + search, MOST_OF_PATH);
}

const FORMS = [
  host,
  endpoint => (endpoint.description ? `${host(endpoint)} (${shortened(endpoint.description, MOST_OF_NOTE)})` : null),
  place,
  endpoint => `${place(endpoint)}, created ${timeText(endpoint.created_at)}`,
  endpoint => `${place(endpoint)}, number ${endpoint.number}`,
];

/** Reads all webhooks. */
export async function readWebhooks(signal) {
  const { endpoints } = await get("/settings/webhooks", {}, signal);
  // Ids sort by the time of creation.
  const ids = endpoints.map(({ id }) => id).sort();
  return labelled(endpoints.map(endpoint => ({ ...endpoint, number: ids.indexOf(endpoint.id) + 1 })), FORMS);
}

/** Reads a webhook by its id: with the others, from which its label tells it. */
export async function readWebhook(id, signal) {
  const found = (await readWebhooks(signal)).find(endpoint => endpoint.id === id);
  if (!found) throw new ApiError("refused", "", { status: 404, code: "not_found" });
  return found;
}

/** Shows what a webhook is called; its whole address is in `title`. */
export const called = endpoint => userText(endpoint.label, { title: endpoint.url });
