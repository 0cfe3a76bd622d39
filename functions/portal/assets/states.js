// The states that any screen can be in: a title, what it means, and the way out.

import { h } from "./dom.js";
import { FRAMED } from "./frame.js";
import { button, empty } from "./ui.js";
import { sentence } from "./words.js";

const STATES = {
  "no-session": ["Not signed in", "Open this page from your application: it signs you in here.", false],
  "no-answer": ["Not signed in", "Your application did not sign you in here in time.", true],
  session: ["Your session has ended", "Sign in to your application again, then open this page from there.", FRAMED],
  offline: ["No connection", "No answer came. Check your internet connection, then try again.", true],
  limit: ["Too many requests", null, true],
  unavailable: [
    "Not available at the moment",
    "Something went wrong on our side, not on yours. Try again in a minute.",
    true,
  ],
  session_without_coach: [
    "Your sign-in names no workspace",
    "You are signed in, but your application did not say whose workspace to show. Ask the support of your application.",
    false,
  ],
  nowhere: ["This page does not exist", "The link is out of date, or was not copied as a whole.", false],
  workspace_unknown: [
    "Your workspace is being set up",
    "Your application has not told us of your workspace yet. This " +
      "usually takes less than a minute. If it lasts, ask the support of your application.",
    true,
  ],
  refused: ["This cannot be shown", "The link is out of date, or asks for something that does not exist.", false],
  not_found: ["Not found", "It does not exist any more, or it belongs to another workspace.", false],
};

const SIGNS = {
  "no-session": "lock",
  "no-answer": "lock",
  session: "lock",
  offline: "bad",
  limit: "warn",
  unavailable: "bad",
  nowhere: "search",
};

/** Returns the screen for an error that a screen threw. `retry` shows the screen anew. */
export function stateFor(error, retry) {
  const [title, words, canRetry] = STATES[error.code] ?? STATES[error.kind] ?? STATES.unavailable;
  if (!error.kind) console.error(error);
  const content = empty(
    SIGNS[error.kind] ?? "info",
    null,
    h("p", {}, error.kind === "limit" ? sentence(error) : (words ?? sentence(error))),
    error.kind === "refused" &&
      !STATES[error.code] &&
      h("p", { class: "hint" }, `Answer of the service: ${sentence(error)}`),
    error.status === 400 && h("p", {}, h("a", { href: location.hash.split("?")[0] }, "Show it without a filter")),
    error.kind === "unavailable" &&
      error.reference &&
      h("p", { class: "hint" }, `Reference for support: ${error.reference}`),
    canRetry
      ? button("Try again", retry, { kind: "main" })
      : error.kind !== "no-session" && h("a", { href: "#/" }, "Back to the overview"),
  );
  return { title, content };
}
