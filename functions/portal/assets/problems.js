// The problems that the overview shows, as notices.

import { h, userText } from "./dom.js";
import { ago, host, time } from "./format.js";
import { entitlementWarning, isExpiringSoon, lastUse } from "./key-words.js";
import { link, notice } from "./ui.js";

/** Returns a notice for each problem, the worst first. `live`: the keys that work. */
export function problemsOf(workspace, endpoints, live) {
  const problems = [
    ...endpoints.flatMap(endpointProblem),
    ...planProblems(workspace, live),
    ...live.flatMap(keyProblem),
  ];
  return problems.sort((one, other) => other.classList.contains("bad") - one.classList.contains("bad"));
}

function planProblems(workspace, live) {
  const used = ["partner", "crm"].filter(scope => live.some(key => key.scope === scope));
  return used.map(scope => entitlementWarning(workspace, scope)).filter(Boolean);
}

function endpointProblem(endpoint) {
  const where = host(endpoint.url);
  const detailsLink = h("p", {}, link(`#/webhooks/${encodeURIComponent(endpoint.id)}`, "See what to do"));
  if (endpoint.status === "gone") {
    return [
      notice(
        "bad",
        "A webhook has ended",
        h(
          "p",
          {},
          "The system at ",
          where,
          " said that this address is gone for good. It receives " + "nothing any more.",
        ),
        detailsLink,
      ),
    ];
  }
  if (endpoint.status === "disabled" && endpoint.disabled_reason_code !== "by_hand") {
    return [
      notice(
        "bad",
        "A webhook was switched off",
        h(
          "p",
          {},
          "The system at ",
          where,
          " did not accept events for days, so it was switched off ",
          ago(endpoint.disabled_at, "lately"),
          ". It receives nothing until you switch it on.",
        ),
        detailsLink,
      ),
    ];
  }
  if (endpoint.status === "disabled") {
    return [
      notice(
        "calm",
        "A webhook is paused",
        h(
          "p",
          {},
          "You paused ",
          where,
          " ",
          ago(endpoint.disabled_at, "lately"),
          ". It receives nothing " + "until you switch it on.",
        ),
        detailsLink,
      ),
    ];
  }
  if (!endpoint.failing_since) return [];
  return [
    notice(
      "bad",
      "A webhook has problems",
      h(
        "p",
        {},
        "The system at ",
        where,
        " has not accepted events since ",
        time(endpoint.failing_since),
        ". They are sent again for about a day.",
      ),
      detailsLink,
    ),
  ];
}

function keyProblem(key) {
  const name = link(`#/keys/${encodeURIComponent(key.id)}`, userText(key.name));
  if (isExpiringSoon(key))
    return [
      notice(
        "warn",
        "A key ends soon",
        h("p", {}, "The key ", name, " ends on ", time(key.expires_at), ". ", lastUse(key), "."),
      ),
    ];
  if (key.status === "replaced") {
    return [
      notice(
        "warn",
        "A replaced key still works",
        h(
          "p",
          {},
          "The key ",
          name,
          " works until ",
          time(key.works_until),
          ". ",
          lastUse(key),
          ". Make sure that the new key is in place by then.",
        ),
      ),
    ];
  }
  return [];
}
