// The reason why a webhook fails, and its events that wait. They are read by themselves: a list may have a filter.

import { getPage, path } from "./api.js";
import { h } from "./dom.js";
import { count, due, time } from "./format.js";
import { advice, isAccepted, outcome, wasSent } from "./outcome.js";
import { link } from "./ui.js";

const PAGE = 50;
/** Longer than the service tries an event, with the waits that receivers ask for. */
const LONGEST_CHAIN_MS = 2 * 24 * 3_600_000;

/** Returns true if the webhook fails, or was stopped because it failed. */
export const isFailing = endpoint =>
  endpoint.status === "enabled" ? Boolean(endpoint.failing_since) : endpoint.disabled_reason_code === "failing";

/** Returns true for a failed event that can be sent again with others: no test event, and its client is not erased. */
export const canRecover = ({ test, attempts }) => !test && attempts.at(-1)?.error !== "not sent: client erased";

/** Reads the events of a webhook that wait: `{ items, next }`. */
export const readWaiting = (endpoint, signal) => read(endpoint, { status: "pending" }, signal);

/**
 * Reads `{ waiting, failed, failure }`: the events that wait and those that failed, `{ items, next }` each, and the
 * latest failure of both.
 */
export async function readTrouble(endpoint, signal) {
  const [waiting, failed] = await Promise.all([
    endpoint.status === "enabled" ? readWaiting(endpoint, signal) : { items: [], next: null },
    // After a stop each new event is an entry that was not sent. The reason is in those before.
    read(endpoint, { status: "failed", until: endpoint.disabled_at }, signal),
  ]);
  return { waiting, failed, failure: latestFailure([...waiting.items, ...failed.items]) };
}

const read = (endpoint, query, signal) =>
  getPage(path`/settings/webhooks/${endpoint.id}/deliveries`, { ...query, limit: PAGE }, signal);

/** Returns the latest failed attempt with its `delivery`, or null. */
export function latestFailure(deliveries) {
  const attempts = deliveries.flatMap(delivery => delivery.attempts.map(attempt => ({ ...attempt, delivery })));
  const failed = attempts.filter(attempt => !isAccepted(attempt) && wasSent(attempt));
  return failed.sort((one, other) => other.at.localeCompare(one.at))[0] ?? null;
}

/** Says why an attempt failed, with a link to it. */
export const reason = failure =>
  failure &&
  h(
    "p",
    {},
    `The last time, ${outcome(failure)}. `,
    advice(failure) && `${advice(failure)} `,
    link(
      path`#/webhooks/${failure.delivery.endpoint_id}/deliveries/${failure.delivery.id}`,
      "See this event and the answer",
      h("span", { class: "unseen" }, " of ", time(failure.at)),
    ),
  );

/** Says how many events wait, and when the next one is sent. */
export function waitingWords({ items, next }) {
  if (!items.length) return null;
  const at = items.map(delivery => delivery.next_attempt_at).filter(Boolean).sort()[0];
  return h(
    "p",
    {},
    `Waiting: ${next ? "at least " : ""}${count(items.length, "event")}. You need not do anything for that`,
    at && [": the next try is ", due(at), " (", time(at), ")"],
    ".",
  );
}

/**
 * The time since which failed events are to be sent again, if the webhook has or had trouble. The first ones that failed
 * had been tried before: they are older than the trouble.
 */
export function recoverSince(endpoint) {
  const began = endpoint.failing_since ?? endpoint.disabled_at;
  return began && new Date(Date.parse(began) - LONGEST_CHAIN_MS).toISOString();
}

/** The address of the screen that sends failed events again, with all that failed since the trouble began. */
export function recoverAddress(endpoint) {
  const since = recoverSince(endpoint);
  return `${path`#/webhooks/${endpoint.id}/recover`}${since ? `?since=${encodeURIComponent(since)}` : ""}`;
}
