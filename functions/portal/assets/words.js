// Plain words for refusals. A refusal without words here shows the service's own sentence.

import { count } from "./format.js";
import { FRAMED } from "./frame.js";

const WORDS = {
  workspace_unknown: "Your application has not told us of your workspace yet. Try again in a minute.",
  key_limit_reached: "You have as many active keys as you can have. Revoke one that you do not use, then try again.",
  key_not_live: "This key is revoked or has ended, so it cannot be replaced. Create a new key.",
  key_not_active: "This key has ended or was replaced already, so nothing was changed.",
  key_revoked: "This key is revoked. A revoked key cannot be changed.",
  endpoint_limit_reached: "You have as many webhooks as you can have. Delete one that you do not use, then try again.",
  endpoint_gone: "The other system said that this address is gone for good. Create a webhook for its new address.",
  endpoint_disabled: "This webhook is not on. Start it first.",
  secret_limit_reached: "The secret was replaced too often within 24 hours. Try again tomorrow.",
  delivery_erased: "The client that this event is about was erased. It cannot be sent again.",
  recovery_running: "Events are being sent again already. Wait until that has finished.",
  idempotency_in_progress: "This is being done right now. Wait a few seconds, then press the button again.",
  idempotency_payload_mismatch:
    "This form was sent already with other content. Load the page again to see what was made.",
  not_found: "It does not exist any more, or it belongs to another workspace.",
  session_without_coach: "Your application did not say whose workspace this is. Ask its support.",
};

// Another page cannot renew the session of this one, and gets none of its input.
const SIGN_IN = FRAMED
  ? "Sign in to your application again, then press the button again."
  : "Copy what you still need, then open this page from your application again.";

// Words for a field whose refusal by the service is for developers.
const FIELDS = {
  webhook_id: "This is not the id of an event. It begins with evt_: copy it as a whole.",
};

/** Returns the sentence for an `ApiError`. */
export function sentence(error) {
  switch (error.kind) {
    case "offline":
      return "No answer came. Check your connection, then press the button again: nothing is done twice.";
    case "session":
      return `Your session has ended. ${SIGN_IN}`;
    case "limit":
      return `There were too many requests in a short time. Try again in ${wait(error.retryAfterS)}.`;
    case "unavailable":
      return `Something went wrong on our side. Press the button again: nothing is done twice.${reference(error)}`;
    case "refused":
      return WORDS[error.code] ?? FIELDS[error.field] ?? capitalized(withoutField(error));
    default:
      return "Something went wrong in this page. Load it again.";
  }
}

const wait = seconds => (seconds ? count(seconds, "second") : "a minute");

const reference = error => (error.reference ? ` (Reference for support: ${error.reference})` : "");

// The sentence is shown at the field, so the field's name in the API is of no use.
const withoutField = ({ field, message }) =>
  field && message.startsWith(`${field} `) ? `This ${message.slice(field.length + 1)}` : message;

function capitalized(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
