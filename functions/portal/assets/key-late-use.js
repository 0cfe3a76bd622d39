// Keys that are still used after their end.

import { get, path } from "./api.js";
import { LIMITS } from "./domain.js";
import { h, userText } from "./dom.js";
import { ago, count, dayOf } from "./format.js";
import { until } from "./key-words.js";
import { now } from "./service-clock.js";
import { link, notice } from "./ui.js";

const WEEK_MS = 7 * 24 * 3_600_000;

/** The time from which on a key opens nothing, or null. */
function endOf({ status, revoked_at: revoked, works_until: end, expires_at: expiry }) {
  if (status === "revoked") return revoked;
  return status === "expired" ? (end ?? expiry) : null;
}

/**
 * Reads which of the keys were tried in the last week although they had ended: summaries of their requests, by id. Asks
 * for nothing if none has ended.
 */
export async function readLateUse(keys, signal) {
  const ends = new Map(keys.map(key => [key.id, endOf(key)]).filter(([, end]) => end));
  if (!ends.size) return new Map();
  const { data } = await get("/settings/requests/summary", { hours: LIMITS.requestsKeptDays * 24 }, signal);
  const isLate = ({ key_id: id, last_at: at }) =>
    ends.has(id) && new Date(at) > new Date(ends.get(id)) && now() - new Date(at) < WEEK_MS;
  return new Map(data.filter(isLate).map(use => [use.key_id, use]));
}

/** Says that a key is still used after its end. `name`: the key as a link, where the screen is not about the key. */
export function lateUse(key, { last_at: last, codes }, name) {
  const refusals = codes.find(({ code }) => code === "unauthorized");
  const end =
    key.status === "revoked" ? ["you revoked on ", dayOf(key.revoked_at)] : ["worked until ", until(endOf(key))];
  const about = () => name && h("span", { class: "unseen" }, ": ", userText(key.label));
  return notice(
    "bad",
    ["A key that ", end, " is still being used", about()],
    h(
      "p",
      {},
      name ? ["The key ", name] : "It",
      " was tried last ",
      ago(last),
      // Of many refusals in a minute, the service keeps the first.
      refusals && `, and at least ${count(refusals.count, "time")} in the last ${LIMITS.requestsKeptDays} days`,
      ". It is refused each time.",
    ),
    h(
      "p",
      {},
      `Give the system that still has it ${key.replaced_by ? "the" : "a"} `,
      link(key.replaced_by ? path`#/keys/${key.replaced_by}` : "#/keys/new", "new key", about()),
      ", or take it out there. Whoever has it: it opens nothing.",
    ),
    h("p", {}, link(path`#/requests?key_id=${key.id}`, "See what it was used for", about())),
  );
}
