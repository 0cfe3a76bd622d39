// The states of webhooks and deliveries, in words.

import { LIMITS } from "./domain.js";
import { h, userText } from "./dom.js";
import { address, count, hostName, list } from "./format.js";
import { shortened } from "./labels.js";
import { badge } from "./ui.js";

const SHORT_ADDRESS = 160;
const SHORT_HOST = 60;

const DISABLED = { by_hand: ["calm", "Paused"], failing: ["bad", "Stopped"] };

const DELIVERY = { pending: ["warn", "Waiting"], delivered: ["good", "Delivered"], failed: ["bad", "Failed"] };

/** Returns true if the webhook needs its coach: it fails, or it gets nothing though nobody paused it. */
export const hasProblem = endpoint =>
  endpoint.status === "gone" ||
  Boolean(endpoint.failing_since) ||
  isSilent(endpoint) ||
  (endpoint.status === "disabled" && endpoint.disabled_reason_code !== "by_hand");

/** Returns true if nothing is sent by itself at the moment, because the receiver does not answer. */
export const isSilent = endpoint => endpoint.status === "enabled" && Boolean(endpoint.breaker_open_until);

/** The status of a webhook in a word. */
export function statusBadge(endpoint) {
  if (endpoint.status === "gone") return badge("bad", "Gone");
  if (endpoint.status === "disabled") return badge(...(DISABLED[endpoint.disabled_reason_code] ?? DISABLED.failing));
  if (isSilent(endpoint)) return badge("bad", "Does not answer");
  return endpoint.failing_since ? badge("bad", "Failing") : badge("good", "On");
}

/** The status of a delivery in a word. */
export const deliveryBadge = ({ status }) => badge(...(DELIVERY[status] ?? ["calm", status]));

/** The choices of a status filter. */
export const DELIVERY_CHOICES = Object.entries(DELIVERY).map(([status, [, word]]) => [status, word]);

/** "3 events": the number of events that wait, which are counted up to a limit. */
export const waitingCount = (pending, noun = "event", plural = undefined) =>
  `${pending >= LIMITS.countedPending ? "at least " : ""}${count(pending, noun, plural)}`;

/** "12 delivered, 1 failed and 2 waiting", or "nothing to send". */
export function lastDay({ delivered, failed, pending }) {
  if (!delivered && !failed && !pending) return "nothing to send";
  const parts = [
    delivered && count(delivered, "delivered", "delivered"),
    failed && count(failed, "failed", "failed"),
    pending && waitingCount(pending, "waiting", "waiting"),
  ];
  return list(parts.filter(Boolean));
}

/** The data that each payload mode sends, and what follows from that. */
export const MODES = {
  identifiers: [
    "Without contact details",
    "Only ids, numbers and dates are sent: nothing that names a person. " +
      "A system that finds people by e-mail address or phone number finds nobody.",
  ],
  contact_details: [
    "With contact details",
    "The person's name, e-mail address and phone number are sent too, the id that the other system " +
      "gave the client, and the names of opportunities. Choose it if the other system finds people " +
      "by any of these, and may have these data.",
  ],
};

/** A whole web address. A long one opens on demand. */
export function wholeAddress(url) {
  if (url.length <= SHORT_ADDRESS) return address(url);
  return h(
    "details",
    {},
    h("summary", {}, userText(shortened(hostName(url), SHORT_HOST)), ` and ${count(url.length - hostName(url).length, "more character")}`),
    address(url),
  );
}
