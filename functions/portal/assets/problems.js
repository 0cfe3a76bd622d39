// The problems that the overview shows, as notices.

import { path } from "./api.js";
import { h, userText } from "./dom.js";
import { ago, count, host, time } from "./format.js";
import { entitlementWarning, isExpiringSoon, isLive, lastUse, until } from "./key-words.js";
import { link, notice } from "./ui.js";
import { canRecover, isFailing, latestFailure, reason, waitingWords } from "./webhook-trouble.js";

const DAY_MS = 24 * 3_600_000;
const WEEK_MS = 7 * DAY_MS;

/** Returns a notice for each problem, the worst first. `troubles`: by the id of the webhook, if it has any. */
export function problemsOf(workspace, endpoints, keys, troubles) {
  const problems = [
    ...endpoints.map(endpoint => endpointProblem(endpoint, troubles.get(endpoint.id))),
    ...planProblems(workspace, keys.filter(isLive)),
    ...keys.map(keyProblem),
  ].filter(Boolean);
  return problems.sort((one, other) => other.classList.contains("bad") - one.classList.contains("bad"));
}

function planProblems(workspace, live) {
  const used = ["partner", "crm"].filter(scope => live.some(key => key.scope === scope));
  return used.map(scope => entitlementWarning(workspace, scope)).filter(Boolean);
}

function endpointProblem(endpoint, trouble) {
  const where = host(endpoint.url);
  const name = h("span", { class: "unseen" }, " about ", host(endpoint.url));
  const detailsLink = h("p", {}, link(path`#/webhooks/${endpoint.id}`, "See what to do", name));
  if (endpoint.status === "gone") {
    return notice(
      "bad",
      "A webhook has ended",
      h("p", {}, "The system at ", where, " said that this address is gone for good. It gets nothing any more."),
      detailsLink,
    );
  }
  if (endpoint.disabled_reason_code === "by_hand") {
    return notice(
      "calm",
      "A webhook is paused",
      h("p", {}, "You paused ", where, " ", ago(endpoint.disabled_at), ". It gets nothing until you start it again."),
      detailsLink,
    );
  }
  if (endpoint.status === "disabled") {
    return notice(
      "bad",
      "A webhook has stopped",
      h(
        "p",
        {},
        "Nothing had got through to ",
        where,
        " for days, so sending stopped ",
        ago(endpoint.disabled_at),
        ". It gets nothing until you start it again.",
      ),
      reason(trouble.failure),
      detailsLink,
    );
  }
  if (isFailing(endpoint)) {
    return notice(
      "bad",
      "A webhook is failing",
      h("p", {}, "The system at ", where, " has accepted nothing since ", time(endpoint.failing_since), "."),
      reason(trouble.failure),
      waitingWords(trouble.waiting),
      detailsLink,
    );
  }
  return trouble ? failedEvents(endpoint, trouble.failed) : null;
}

/** The problem of a webhook that works, but has events of the last day that failed for good. */
function failedEvents(endpoint, { items, next }) {
  const since = new Date(Date.now() - DAY_MS).toISOString();
  const failed = items.filter(delivery => canRecover(delivery) && delivery.created_at >= since);
  if (!failed.length) return null;
  const base = path`#/webhooks/${endpoint.id}`;
  const name = () => h("span", { class: "unseen" }, " to ", host(endpoint.url));
  return notice(
    "bad",
    "Some events have failed",
    h(
      "p",
      {},
      `Failed in the last 24 hours: ${next && failed.length === items.length ? "at least " : ""}${count(failed.length, "event")} to `,
      host(endpoint.url),
      ". The service does not send them again by itself.",
    ),
    reason(latestFailure(failed)),
    h(
      "p",
      {},
      link(`${base}/recover?since=${encodeURIComponent(since)}`, "Send them again", name()),
      " · ",
      link(`${base}?status=failed`, "See which and why", name()),
    ),
  );
}

/** Returns true for a key that was in use and ended in the last week without a successor. */
const hasJustEnded = key =>
  key.status === "expired" && !key.replaced_by && key.last_used_at && Date.now() - new Date(key.expires_at) < WEEK_MS;

function keyProblem(key) {
  const name = link(path`#/keys/${key.id}`, userText(key.name));
  if (hasJustEnded(key)) {
    return notice(
      "bad",
      "A key has ended",
      h("p", {}, "The key ", name, " ended ", ago(key.expires_at), ", and what uses it is refused. ", lastUse(key), "."),
      h("p", {}, link("#/keys/new", "Create a new key for it")),
    );
  }
  if (isExpiringSoon(key)) {
    return notice(
      "warn",
      "A key ends soon",
      h("p", {}, "The key ", name, " works until ", until(key.expires_at), ". ", lastUse(key), "."),
    );
  }
  if (key.status !== "replaced") return null;
  return notice(
    "warn",
    "A replaced key still works",
    h(
      "p",
      {},
      "The key ",
      name,
      " works until ",
      until(key.works_until),
      ". ",
      lastUse(key),
      ". Make sure that the new key is in place by then.",
    ),
  );
}
