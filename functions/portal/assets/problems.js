// The problems that the overview shows, as notices.

import { path } from "./api.js";
import { h, userText } from "./dom.js";
import { ago } from "./format.js";
import { lateUse } from "./key-late-use.js";
import { entitlementWarning, isExpiringSoon, isLive, lastUse, until } from "./key-words.js";
import { now } from "./service-clock.js";
import { link, notice } from "./ui.js";
import { webhookProblem } from "./webhook-problems.js";

const WEEK_MS = 7 * 24 * 3_600_000;

/**
 * Returns a notice for each problem, the worst first. `troubles`: by the id of the webhook, as far as they were read;
 * `lateUses`: by the id of the key.
 */
export function problemsOf({ workspace, endpoints, keys, troubles, lateUses }) {
  const problems = [
    ...endpoints.map(endpoint => webhookProblem(endpoint, troubles.get(endpoint.id))),
    ...planProblems(workspace, keys.filter(isLive)),
    ...keys.map(key => keyProblem(key, lateUses.get(key.id))),
  ].filter(Boolean);
  return problems.sort((one, other) => other.classList.contains("bad") - one.classList.contains("bad"));
}

function planProblems(workspace, live) {
  const used = ["partner", "crm"].filter(scope => live.some(key => key.scope === scope));
  return used.map(scope => entitlementWarning(workspace, scope)).filter(Boolean);
}

/** Returns true for a key that was in use and ended in the last week without a successor. */
const hasJustEnded = key =>
  key.status === "expired" && !key.replaced_by && key.last_used_at && now() - new Date(key.expires_at) < WEEK_MS;

function keyProblem(key, used) {
  const name = link(path`#/keys/${key.id}`, userText(key.label));
  const problem = (kind, title, ...words) => notice(kind, [title, h("span", { class: "unseen" }, ": ", userText(key.label))], ...words);
  if (used) return lateUse(key, used, name);
  if (hasJustEnded(key)) {
    return problem(
      "bad",
      "A key has ended",
      h("p", {}, "The key ", name, " ended ", ago(key.expires_at), ", and what uses it is refused. ", lastUse(key), "."),
      h("p", {}, link("#/keys/new", "Create a new key for it")),
    );
  }
  if (isExpiringSoon(key)) {
    return problem(
      "warn",
      "A key ends soon",
      h("p", {}, "The key ", name, " works until ", until(key.expires_at), ". ", lastUse(key), "."),
    );
  }
  if (key.status !== "replaced") return null;
  return problem(
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
