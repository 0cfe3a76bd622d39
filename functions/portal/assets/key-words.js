// Words about keys, for the screens that show them.

import { PERMISSIONS, SCOPES } from "./domain.js";
import { h } from "./dom.js";
import { ago, dayBefore, time } from "./format.js";
import { now } from "./service-clock.js";
import { badge, link, notice } from "./ui.js";

const DAY_MS = 86_400_000;
const SOON_MS = 14 * DAY_MS;
const PRESETS = [
  ["never", "Never"],
  ["30", "In 30 days"],
  ["90", "In 90 days"],
  ["365", "In one year"],
  ["date", "On a date that I choose"],
];

const BADGES = {
  active: ["good", "Active"],
  replaced: ["warn", "Replaced"],
  expired: ["calm", "Ended"],
  revoked: ["calm", "Revoked"],
};

/** The status of a key as a badge. */
export const statusBadge = key =>
  badge(...(isExpiringSoon(key) ? ["warn", "Ends soon"] : (BADGES[key.status] ?? ["calm", key.status])));

/** Returns true while the key opens anything. */
export const isLive = key => key.status === "active" || key.status === "replaced";

/** Returns true for an active key that ends within two weeks, without a successor. */
export function isExpiringSoon(key) {
  return key.status === "active" && key.expires_at !== null && new Date(key.expires_at) - now() < SOON_MS;
}

/** "Clients" or "CRM". */
export const scopeTitle = scope => SCOPES.find(({ name }) => name === scope)?.title ?? scope;

/** Lists the abilities of a key in sentences. */
export function abilities(key) {
  const title = permission => PERMISSIONS.find(({ name }) => name === permission)?.title ?? permission;
  return h(
    "ul",
    {},
    key.permissions.map(permission => h("li", {}, title(permission))),
  );
}

/** Until when the key works, in a sentence. */
export function ending(key) {
  switch (key.status) {
    case "revoked":
      return ["Revoked ", ago(key.revoked_at)];
    case "expired":
      return ["Ended ", ago(key.works_until ?? key.expires_at)];
    case "replaced":
      return ["Works until ", until(key.works_until)];
    default:
      return key.expires_at ? ["Works until ", until(key.expires_at)] : "Works until you revoke it";
  }
}

/** The end of a key, for a sentence: a key that ends where a day begins ends with the day before. */
export function until(iso) {
  const end = new Date(iso);
  // A day begins at one o'clock where the clocks change at midnight.
  const dayBegins = new Date(end.getFullYear(), end.getMonth(), end.getDate());
  return end.getTime() === dayBegins.getTime() ? ["the end of ", dayBefore(iso)] : time(iso);
}

/** When the key was last used, in a sentence. */
export const lastUse = key => (key.last_used_at ? ["Last used ", ago(key.last_used_at)] : "Never used");

/** Says why keys of this kind do not work in this workspace, or returns null if they do. */
export function entitlementWarning({ entitlements, crm_configured }, scope) {
  if (scope === "partner" && !entitlements.partner_api) {
    return warning(
      "Your plan does not include access to clients",
      "Keys for clients are refused until your plan includes it.",
    );
  }
  if (scope !== "crm") return null;
  if (!entitlements.pro_crm)
    return warning("Your plan does not include the Pro CRM", "CRM keys are refused until your plan includes it.");
  if (!entitlements.gym)
    return warning("The gym features are switched off", "CRM keys are refused until they are switched on.");
  if (crm_configured) return null;
  return warning(
    "The CRM needs one more setting",
    "CRM keys are refused until you choose in your application where people go whom another system adds: " +
      "a pipeline, and its first stage.",
  );
}

const warning = (title, words) => notice("warn", title, h("p", {}, words));

/** The choices for the end of a key. */
export const presets = () => PRESETS.map(([value, label]) => ({ value, label }));

// A day where the coach is, as a date input takes it.
const dateInput = at =>
  [at.getFullYear(), at.getMonth() + 1, at.getDate()].map(part => String(part).padStart(2, "0")).join("-");

/** Tomorrow, as a date input takes it: the next day of the calendar, which may have 23 or 25 hours. */
export function tomorrow() {
  const today = new Date(now());
  return dateInput(new Date(today.getFullYear(), today.getMonth(), today.getDate() + 1));
}

/** The last day on which a key works that ends at `iso`, as a date input takes it. */
export const lastDay = iso => dateInput(new Date(new Date(iso) - 1));

/**
 * Returns `expires_at` for a choice: the end of a day where the coach is, or null for never. `opened`: when the form
 * was opened, so that sending the form again sends the same.
 */
export function expiry(preset, date, opened) {
  if (preset === "never") return null;
  const [year, month, day] =
    preset === "date"
      ? date.split("-").map(Number)
      : [opened.getFullYear(), opened.getMonth() + 1, opened.getDate() + Number(preset)];
  return new Date(year, month - 1, day + 1).toISOString();
}

/** The note for the developer who gets the key. */
export function developerNote(key) {
  return [
    h(
      "p",
      {},
      `This key lets your system call the ${key.scope === "crm" ? "CRM" : "Partner"} API at `,
      h("code", {}, location.origin),
      ". Send it with every request, in the header ",
      h("code", {}, "Authorization: Bearer <key>"),
      ".",
    ),
    h(
      "p",
      {},
      "It is a password: keep it on a server, never in a web page or an app. ",
      link("/docs", "Read the documentation"),
      ".",
    ),
  ];
}
