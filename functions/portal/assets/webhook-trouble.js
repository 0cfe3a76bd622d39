// The trouble of a webhook: the reason why it fails, and its events that wait or failed. It is read by itself: a
// list may have a filter.

import { getPage, path } from "./api.js";
import { h } from "./dom.js";
import { due, time } from "./format.js";
import { advice, isAccepted, outcome, wasSent } from "./outcome.js";
import { now } from "./service-clock.js";
import { link } from "./ui.js";
import { called } from "./webhook-list.js";
import { isSilent, waitingCount } from "./webhook-status.js";

// Events of one webhook that are read. More of them would tell no other reason.
const PAGE = 5;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
// Longer than the service tries an event, with the waits that receivers ask for.
const LONGEST_CHAIN_MS = 2 * DAY_MS;

/** Returns true if the webhook fails, if only with test events, or was stopped because it failed. */
export const isFailing = endpoint =>
  endpoint.status === "enabled"
    ? Boolean(endpoint.failing_since) || isSilent(endpoint)
    : endpoint.disabled_reason_code === "failing";

/** Returns true if the webhook fails, or events of its last day have failed. */
export const hasTrouble = endpoint => isFailing(endpoint) || (endpoint.status === "enabled" && endpoint.last_24h.failed > 0);

/** Sorts webhooks: those that fail first, then those that have stopped, then those with failed events. */
export const byUrgency = endpoints => endpoints.toSorted((one, other) => urgency(other) - urgency(one));

function urgency(endpoint) {
  if (isFailing(endpoint)) return endpoint.status === "enabled" ? 3 : 2;
  return hasTrouble(endpoint) ? 1 : 0;
}

/**
 * Reads `{ waiting, failed, failure }`: a page of the events that wait, or of those that failed, and the latest
 * failure of them. One request.
 */
export async function readTrouble(endpoint, signal) {
  const query = troubleQuery(endpoint);
  const page = await getPage(path`/settings/webhooks/${endpoint.id}/deliveries`, { ...query, limit: PAGE }, signal);
  return { [query.status === "pending" ? "waiting" : "failed"]: page, failure: latestFailure(page.items) };
}

function troubleQuery(endpoint) {
  // After a stop each new event is an entry that was not sent. The reason is in those before.
  if (endpoint.status !== "enabled") return { status: "failed", until: endpoint.disabled_at };
  if (!isFailing(endpoint)) return { status: "failed", since: failedSince() };
  if (!endpoint.last_24h.pending) return { status: "failed" };
  // While the receiver does not answer, new events only wait. The reason is in those with which the trouble began.
  const since = isSilent(endpoint) && endpoint.failing_since;
  return { status: "pending", until: since ? new Date(new Date(since).getTime() + MINUTE_MS).toISOString() : null };
}

/** The creation of the oldest event that can have failed for good in the last 24 hours. */
export const failedSince = () => creationBefore(now() - DAY_MS);

/**
 * Returns true for an event that failed in the last 24 hours and can be sent again with others: no test event, and
 * its client is not erased.
 */
export function isRecoverable({ test, attempts }) {
  const last = attempts.at(-1);
  return !test && last && last.error !== "not sent: client erased" && now() - new Date(last.at) < DAY_MS;
}

/** Returns the latest failed attempt with its `delivery`, or null. */
export function latestFailure(deliveries) {
  const attempts = deliveries.flatMap(delivery => delivery.attempts.map(attempt => ({ ...attempt, delivery })));
  const failed = attempts.filter(attempt => !isAccepted(attempt) && wasSent(attempt));
  return failed.sort((one, other) => other.at.localeCompare(one.at))[0] ?? null;
}

/** Says why an attempt to send an event to the webhook failed, with a link to it. */
export const reason = (endpoint, failure) =>
  failure &&
  h(
    "p",
    {},
    `The last time, ${outcome(failure)}. `,
    advice(failure) && `${advice(failure)} `,
    link(
      path`#/webhooks/${failure.delivery.endpoint_id}/deliveries/${failure.delivery.id}`,
      "See this event and the answer",
      h("span", { class: "unseen" }, " of ", time(failure.at), ", to ", called(endpoint)),
    ),
  );

/** Says that the receiver does not answer, and when the next try is. `where`: the receiver, for a sentence. */
export const silence = (endpoint, where) =>
  h(
    "p",
    {},
    where,
    " does not answer; the next try is at ",
    time(endpoint.breaker_open_until),
    " (",
    due(endpoint.breaker_open_until),
    "). Nothing is lost meanwhile: new events wait, and are sent by themselves as soon as it answers again.",
  );

/** Says how many events wait, and when the next one is sent. `waiting`: a page of them, if it was read. */
export function waitingWords(endpoint, waiting = { items: [] }) {
  const { pending } = endpoint.last_24h;
  if (!pending) return null;
  const at = waiting.items.map(delivery => delivery.next_attempt_at).filter(Boolean).sort()[0];
  return h(
    "p",
    {},
    `Waiting: ${waitingCount(pending)}. You need not do anything for that`,
    at && !isSilent(endpoint) && [": the next try is ", due(at), " (", time(at), ")", waiting.next && " at the latest"],
    ".",
  );
}

/** The creation of the oldest event that can have failed in the present trouble, or null. */
export function recoverSince(endpoint) {
  const since = endpoint.failing_since ?? endpoint.disabled_at;
  return since && creationBefore(since);
}

/** The address of the screen that sends failed events again, with all that failed in the present trouble. */
export function recoverAddress(endpoint) {
  const since = recoverSince(endpoint);
  return `${path`#/webhooks/${endpoint.id}/recover`}${since ? `?since=${encodeURIComponent(since)}` : ""}`;
}

/** The creation of the oldest event that can have been tried at a time. */
const creationBefore = time => new Date(new Date(time) - LONGEST_CHAIN_MS).toISOString();
