// Notices about a webhook that fails or gets nothing, each with the way out.

import { path } from "./api.js";
import { LIMITS } from "./domain.js";
import { h } from "./dom.js";
import { ago, time } from "./format.js";
import { link, notice } from "./ui.js";
import { start } from "./webhook-actions.js";
import { isSilent } from "./webhook-status.js";
import { isFailing, readTrouble, reason, recoverAddress, silence, waitingWords } from "./webhook-trouble.js";

/** Returns a notice for a webhook that fails or gets nothing, or null. */
export async function banner(endpoint, page) {
  if (endpoint.status === "gone") return gone(endpoint);
  if (endpoint.disabled_reason_code === "by_hand") return paused(endpoint, page);
  if (!isFailing(endpoint)) return null;
  const trouble = await readTrouble(endpoint, page.signal);
  if (isSilent(endpoint)) return silent(endpoint, trouble);
  return endpoint.status === "enabled" ? failing(endpoint, trouble) : stopped(endpoint, trouble, page);
}

const keptOnly = `New events are kept for ${LIMITS.deliveriesKeptDays} days, but not sent.`;

const repair = ({ id }) =>
  h("li", {}, "Have the other system repaired, or ", link(path`#/webhooks/${id}/edit`, "correct the web address"), ".");

const sendFailed = endpoint => h("li", {}, link(recoverAddress(endpoint), "Send the failed events again"), ".");

// Test events alone say nothing of the time since which nothing is accepted.
const nothingSince = ({ failing_since: since }) =>
  since && ["The other system has accepted nothing since ", time(since), " (", ago(since), "). "];

const stopsAfter = `If nothing gets through for ${LIMITS.failingDays} days, sending stops. Test events that fail do not count.`;

const silent = (endpoint, trouble) =>
  notice(
    "bad",
    "The other system does not answer",
    silence(endpoint, "The other system"),
    h("p", {}, nothingSince(endpoint), stopsAfter),
    reason(endpoint, trouble.failure),
    waitingWords(endpoint),
    h(
      "ol",
      {},
      repair(endpoint),
      h(
        "li",
        {},
        "Send a test event below, to see that it works. It is sent at once, and so is “Send again” at an event.",
      ),
    ),
  );

const failing = (endpoint, trouble) =>
  notice(
    "bad",
    "This webhook is failing",
    h(
      "p",
      {},
      nothingSince(endpoint),
      `What does not get through is tried again up to ${LIMITS.retries} times, over about ${LIMITS.retryHours} hours. `,
      stopsAfter,
    ),
    reason(endpoint, trouble.failure),
    waitingWords(endpoint, trouble.waiting),
    h("ol", {}, repair(endpoint), h("li", {}, "Send a test event below, to see that it works."), sendFailed(endpoint)),
  );

const stopped = (endpoint, trouble, page) =>
  notice(
    "bad",
    "Sending has stopped",
    h(
      "p",
      {},
      `Nothing had got through for ${LIMITS.failingDays} days, so sending stopped `,
      ago(endpoint.disabled_at),
      " (",
      time(endpoint.disabled_at),
      "). ",
      keptOnly,
    ),
    reason(endpoint, trouble.failure),
    h("ol", {}, repair(endpoint), h("li", {}, start(endpoint, page, "Start sending again")), sendFailed(endpoint)),
  );

const paused = (endpoint, page) =>
  notice(
    "calm",
    "This webhook is paused",
    h("p", {}, "It was paused by hand ", ago(endpoint.disabled_at), " (", time(endpoint.disabled_at), "). ", keptOnly),
    h("p", {}, start(endpoint, page, "Start sending again")),
  );

const gone = endpoint =>
  notice(
    "bad",
    "The other system is gone",
    h(
      "p",
      {},
      "It answered ",
      ago(endpoint.disabled_at),
      " (",
      time(endpoint.disabled_at),
      ") that it wants no more events, for good (410). This webhook cannot be started again.",
    ),
    h(
      "p",
      {},
      link(path`#/webhooks/new?template=${endpoint.id}`, "Create a webhook like this one"),
      " with the new address, then delete this one.",
    ),
  );
