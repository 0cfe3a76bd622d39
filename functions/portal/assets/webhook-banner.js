// What is wrong with a webhook, and the way out.

import { path } from "./api.js";
import { h } from "./dom.js";
import { ago, time } from "./format.js";
import { advice, isAccepted, outcome } from "./outcome.js";
import { link, notice } from "./ui.js";
import { start } from "./webhook-actions.js";

/** A notice for a webhook that fails or gets nothing; `deliveries`: the latest, for the reason of the last failure. */
export function banner(endpoint, deliveries, page) {
  if (endpoint.status === "gone") return gone(endpoint);
  if (endpoint.status === "disabled")
    return endpoint.disabled_reason_code === "by_hand" ? paused(endpoint, page) : stopped(endpoint, deliveries, page);
  return endpoint.failing_since ? failing(endpoint, deliveries) : null;
}

const repair = ({ id }) =>
  h("li", {}, "Have the other system repaired, or ", link(path`#/webhooks/${id}/edit`, "correct the web address"), ".");

const failing = (endpoint, deliveries) =>
  notice(
    "bad",
    "This webhook is failing",
    h(
      "p",
      {},
      "The other system has accepted nothing since ",
      time(endpoint.failing_since),
      " (",
      ago(endpoint.failing_since),
      "). ",
      "Events that fail are sent again up to eight times, over about 27 hours. If nothing gets through for five days, sending stops.",
    ),
    reason(deliveries),
    h(
      "ol",
      {},
      repair(endpoint),
      h("li", {}, "Send a test event below, to see that it works."),
      h("li", {}, link(path`#/webhooks/${endpoint.id}/recover`, "Send the missed events again"), "."),
    ),
  );

const stopped = (endpoint, deliveries, page) =>
  notice(
    "bad",
    "Sending has stopped",
    h(
      "p",
      {},
      "Every delivery had failed for five days, so sending stopped ",
      ago(endpoint.disabled_at),
      " (",
      time(endpoint.disabled_at),
      "). ",
      "New events are kept, but not sent.",
    ),
    reason(deliveries),
    h(
      "ol",
      {},
      repair(endpoint),
      h("li", {}, start(endpoint, page, "Start sending again")),
      h("li", {}, "Then send the missed events again: they are kept for 30 days."),
    ),
  );

const paused = (endpoint, page) =>
  notice(
    "warn",
    "This webhook is paused",
    h(
      "p",
      {},
      "It was paused by hand ",
      ago(endpoint.disabled_at),
      " (",
      time(endpoint.disabled_at),
      "). New events are kept for 30 days, but not sent.",
    ),
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
      ") that it wants no more events, for good (410). This webhook cannot be switched on again.",
    ),
    h(
      "p",
      {},
      link(path`#/webhooks/new?template=${endpoint.id}`, "Create a webhook like this one"),
      " with the new address, then delete this one.",
    ),
  );

/** The reason of the latest attempt that failed, if there is one among the deliveries. */
function reason(deliveries) {
  const failed = deliveries
    .flatMap(({ attempts }) => attempts)
    .filter(attempt => !isAccepted(attempt) && !attempt.error?.startsWith("not sent"))
    .toSorted((one, other) => other.at.localeCompare(one.at))[0];
  return failed && h("p", {}, "The last time, ", outcome(failed), ". ", advice(failed));
}
