// The problems of webhooks that the overview shows, as notices.

import { path } from "./api.js";
import { h } from "./dom.js";
import { ago, count, time } from "./format.js";
import { link, notice } from "./ui.js";
import { called } from "./webhook-list.js";
import { isSilent } from "./webhook-status.js";
import { failedSince, hasTrouble, isFailing, isRecoverable, latestFailure, reason, silence, waitingWords } from "./webhook-trouble.js";

/** Returns the notice for the problem of a webhook, or null. `trouble` is read for the most urgent webhooks only. */
export function webhookProblem(endpoint, trouble) {
  if (endpoint.status === "gone") return gone(endpoint);
  if (endpoint.disabled_reason_code === "by_hand") return paused(endpoint);
  if (endpoint.status === "disabled") return stopped(endpoint, trouble);
  if (isFailing(endpoint)) return failing(endpoint, trouble);
  if (!hasTrouble(endpoint)) return null;
  return trouble ? failedEvents(endpoint, trouble.failed) : maybeFailedEvents(endpoint);
}

// Links and headings of many notices have the same words: screen readers hear which webhook each is about.
const about = (endpoint, words = " about ") => h("span", { class: "unseen" }, words, called(endpoint));

const detailsLink = endpoint => h("p", {}, link(path`#/webhooks/${endpoint.id}`, "See what to do", about(endpoint)));

/** A notice whose heading names the webhook to screen readers, too. */
const problem = (endpoint, kind, title, ...children) => notice(kind, [title, about(endpoint, ": ")], ...children);

const gone = endpoint =>
  problem(
    endpoint,
    "bad",
    "A webhook has ended",
    h("p", {}, "The system at ", called(endpoint), " said that this address is gone for good. It gets nothing any more."),
    detailsLink(endpoint),
  );

const paused = endpoint =>
  problem(
    endpoint,
    "calm",
    "A webhook is paused",
    h("p", {}, called(endpoint), " was paused ", ago(endpoint.disabled_at), ". It gets nothing until you start it again."),
    detailsLink(endpoint),
  );

const stopped = (endpoint, trouble) =>
  problem(
    endpoint,
    "bad",
    "A webhook has stopped",
    h(
      "p",
      {},
      "Nothing had got through to ",
      called(endpoint),
      " for days, so sending stopped ",
      ago(endpoint.disabled_at),
      ". It gets nothing until you start it again.",
    ),
    trouble && reason(endpoint, trouble.failure),
    detailsLink(endpoint),
  );

function failing(endpoint, trouble) {
  const where = () => ["The system at ", called(endpoint)];
  const since = endpoint.failing_since && [" has accepted nothing since ", time(endpoint.failing_since), "."];
  return problem(
    endpoint,
    "bad",
    isSilent(endpoint) ? "A webhook gets no answer" : "A webhook is failing",
    isSilent(endpoint) ? [silence(endpoint, where()), since && h("p", {}, "It", since)] : h("p", {}, where(), since),
    trouble && reason(endpoint, trouble.failure),
    waitingWords(endpoint, trouble?.waiting),
    detailsLink(endpoint),
  );
}

/** The problem of a webhook that works, but has events of the last day that failed for good. */
function failedEvents(endpoint, { items, next }) {
  const failed = items.filter(isRecoverable);
  if (!failed.length) return null;
  return problem(
    endpoint,
    "bad",
    "Some events have failed",
    h(
      "p",
      {},
      `Failed in the last 24 hours: ${next && failed.length === items.length ? "at least " : ""}${count(failed.length, "event")} to `,
      called(endpoint),
      ". The service does not send them again by itself.",
    ),
    reason(endpoint, latestFailure(failed)),
    failedLinks(endpoint),
  );
}

/** The same, if only their number is known: some may be tests, or may have got through since. */
const maybeFailedEvents = endpoint =>
  problem(
    endpoint,
    "warn",
    "Some events have failed",
    h(
      "p",
      {},
      `Failed in the last 24 hours: ${count(endpoint.last_24h.failed, "event")} to `,
      called(endpoint),
      ", counting test events and those that you have sent again since.",
    ),
    failedLinks(endpoint),
  );

const failedLinks = endpoint =>
  h(
    "p",
    {},
    link(path`#/webhooks/${endpoint.id}/recover?since=${failedSince()}`, "Send them again", about(endpoint, " to ")),
    " · ",
    link(path`#/webhooks/${endpoint.id}?status=failed`, "See which and why", about(endpoint, " to ")),
  );
