// The attempts to deliver an event, as a line of time.

import { h, icon, userText } from "./dom.js";
import { capital, duration, time } from "./format.js";
import { advice, isAccepted, outcome, wasSent } from "./outcome.js";
import { section } from "./ui.js";

/** The attempts, the latest first. */
export function attempts({ attempts: made, status }) {
  const title = "What happened";
  if (!made.length)
    return section(title, h("p", {}, status === "pending" ? "Nothing was sent yet." : "Nothing was sent."));
  const last = made.findLast(wasSent);
  const item = (one, at) => attempt(one, made.slice(0, at + 1).filter(wasSent).length, one === last);
  return section(title, h("ol", { class: "timeline card" }, made.map(item).reverse()));
}

/** `tries`: the number of requests up to this attempt; `isLast`: its answer stands beside. */
function attempt(made, tries, isLast) {
  const good = isAccepted(made);
  const kind = good ? "good" : wasSent(made) ? "bad" : "calm";
  const words = good ? `the other system accepted the event (${made.status_code})` : outcome(made);
  return h(
    "li",
    { class: kind },
    icon(kind),
    h("b", {}, wasSent(made) ? `Try ${tries}: ${words}` : capital(words)),
    h(
      "p",
      { class: "soft" },
      time(made.at),
      made.duration_ms > 0 && !made.error?.startsWith("timed out") && `, after ${duration(made.duration_ms)}`,
    ),
    !good && advice(made) && h("p", { class: "soft" }, advice(made)),
    !isLast &&
      made.response_excerpt &&
      h(
        "details",
        {},
        h("summary", {}, "What it answered"),
        h("pre", { tabindex: "0", role: "group", "aria-label": "Answer" }, userText(made.response_excerpt)),
      ),
  );
}
