// Says in plain words how an attempt to deliver an event ended, and what helps.

import { LIMITS } from "./domain.js";

const UNREACHABLE = "Check that the web address is right and that the other system is running.";
const CERTIFICATE = "Whoever runs the other system has to renew or repair its certificate.";
const SEND_FAILED = "Start sending again, then use “Send failed events again”.";

/** Texts of the delivery log for a receiver that did not answer: in plain words, and what helps. */
const ERRORS = {
  "connection timed out": ["the other system could not be reached in time", UNREACHABLE],
  "connection refused": ["the other system refused the connection", UNREACHABLE],
  "connection reset": ["the connection broke off", UNREACHABLE],
  "connection lost": ["the connection broke off", UNREACHABLE],
  "connection closed before an answer": ["the other system hung up before it answered", UNREACHABLE],
  "host not reachable": ["the other system could not be reached", UNREACHABLE],
  "no connection": ["the other system could not be reached", UNREACHABLE],
  "name does not resolve": ["the web address does not exist", "Check the spelling of the web address."],
  "name has no IPv4 address": [
    "the web address can only be reached by IPv6, which the service does not use",
    "Whoever runs the other system has to give it an IPv4 address, too.",
  ],
  "address not allowed": ["the web address leads to a private network", "Use an address on the public internet."],
  "no valid HTTP answer": ["the answer of the other system could not be understood", UNREACHABLE],
  "HTTP/2 stream reset": ["the other system broke off the request", UNREACHABLE],
  "TLS: certificate expired": ["the security certificate of the other system has expired", CERTIFICATE],
  "TLS: certificate is for another name": ["the security certificate belongs to another address", CERTIFICATE],
  "TLS: certificate issuer not trusted": ["the security certificate is not from a trusted issuer", CERTIFICATE],
  "TLS: certificate is self-signed": [
    "the security certificate of the other system is self-signed",
    "Whoever runs the other system needs a certificate of a public authority, such as Let’s Encrypt.",
  ],
  "TLS: no version or cipher in common": [
    "the other system offers only outdated secure connections",
    "Whoever runs it has to switch on TLS 1.2 or 1.3.",
  ],
  "TLS: the receiver does not speak it": [
    "the other system offers no secure connection at this address",
    "Compare the web address with the one that the other system shows, also the number after the colon.",
  ],
  "not sent: client erased": ["not sent: the client was erased", null],
  "not sent: endpoint deleted": ["not sent: this web address was deleted", null],
  "not sent: endpoint gone": ["not sent: the other system wants no more events", null],
  "not sent: endpoint disabled": ["not sent: sending was paused", SEND_FAILED],
};

// The delivery log adds the reason. It can only be that every delivery had failed: a pause by hand adds none.
const STOPPED = ["not sent: sending had stopped, because every delivery failed", SEND_FAILED];

// The delivery log adds the seconds.
const TIMED_OUT = [
  `the other system took more than ${LIMITS.attemptSeconds} seconds to answer`,
  "It should answer first and work afterwards.",
];

const STATUSES = {
  400: ["the other system did not accept the event", "Its signature check may hold an old or a wrong secret."],
  401: ["the other system refused access", "Its signature check may hold an old or a wrong secret."],
  403: ["the other system refused access", "A firewall or its signature check may stand in the way."],
  404: ["nothing was found at this web address", "Compare the web address with the one that the other system shows."],
  405: ["this web address takes no events", "Compare the web address with the one that the other system shows."],
  410: ["the other system wants no more events", "If that was a mistake, add the web address again."],
  413: ["the event was too large for the other system", null],
  429: ["the other system asked to slow down", "It gets the event later."],
};

/** Returns true if the receiver accepted the event. */
export const isAccepted = attempt => attempt.status_code >= 200 && attempt.status_code < 300;

/** Returns true if a request was made. The log has entries for events that were not sent, too. */
export const wasSent = attempt => !attempt.error?.startsWith("not sent");

/** Returns the end of an attempt as part of a sentence: "the other system answered with an error (500)". */
export const outcome = attempt => explain(attempt)[0];

/** Returns what helps after an attempt, or null. */
export const advice = attempt => explain(attempt)[1];

function explain({ status_code: status, error }) {
  if (status === undefined || status === null) return explainError(error ?? "");
  const [words, help] = STATUSES[status] ?? byClass(status);
  return [`${words} (${status})`, help];
}

function byClass(status) {
  if (status < 300) return ["accepted", null];
  if (status < 400) return ["the other system pointed to another address", "Use that final address here."];
  if (status < 500) return ["the other system did not accept the event", "Whoever runs it can look the reason up."];
  return ["the other system answered with an error", "Whoever runs it can look the reason up."];
}

function explainError(error) {
  if (ERRORS[error]) return ERRORS[error];
  if (error.startsWith("not sent: endpoint disabled")) return STOPPED;
  if (error.startsWith("timed out")) return TIMED_OUT;
  if (error.startsWith("TLS: certificate")) return ["the security certificate of the other system is not valid", CERTIFICATE];
  if (error.startsWith("TLS:")) return ["no secure connection came about", "Whoever runs the other system can look the reason up."];
  return [error || "no answer", null];
}
