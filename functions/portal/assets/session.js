// The token of the session: in memory alone, from the application's page that frames this one, or from the address.

import { FRAMED, onMessage, post } from "./frame.js";

const WAIT_MS = 8000;
const ASK_EVERY_MS = 1000;
// Begins the name of a window that has loaded the page with a token in its address.
const HANDED_OVER = "portal-session:";

let token = null;
let waiting = null;
// Called when the application gives a token. A token that comes too late waits for the next `other`.
let onToken = () => {};

/** Returns the token of the session, or null. Never store it or put it into an address. */
export const current = () => token;

/** Goes on with another token. */
export function replace(another) {
  token = another;
}

/**
 * Returns a token that is not `refused`, or null. Asks the application for one if there is none: once, for all requests
 * that wait meanwhile.
 */
export async function other(refused = null) {
  if (isLeaving) return new Promise(() => {});
  if (!waiting) {
    if (token !== null && token !== refused) return token;
    token = null;
  }
  return FRAMED && (await ask()) && token !== refused ? token : null;
}

/** Takes `#token=...` out of the address and the history, where `address` stands then. Returns the token or null. */
export function takeFromAddress(address) {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found) history.replaceState(null, "", address);
  return found;
}

/**
 * Takes the token of a link that opened the page. Returns true if the page loads anew. The browser keeps the address of
 * a load in `performance` and `navigation`, token included, as long as the document lives. So the page loads again
 * without the token, which goes along in the window's name. A frame takes its token from the application alone.
 */
function takeFromLink() {
  const address = location.pathname + location.search;
  const found = takeFromAddress(address);
  if (FRAMED) return false;
  if (found) {
    window.name = HANDED_OVER + found;
    location.replace(address);
    return true;
  }
  if (window.name.startsWith(HANDED_OVER)) {
    token = window.name.slice(HANDED_OVER.length);
    window.name = "";
  }
  return false;
}

const isLeaving = takeFromLink();

onMessage(message => {
  if (!waiting && token !== null) return;
  if (message?.type !== "session" || typeof message.token !== "string" || !message.token) return;
  token = message.token;
  onToken();
});

// The application may begin to listen later than this page begins to ask, so this page asks repeatedly.
function ask() {
  waiting ??= new Promise(resolve => {
    const finish = found => {
      clearTimeout(timeout);
      clearInterval(repetition);
      onToken = () => {};
      waiting = null;
      resolve(found);
    };
    const timeout = setTimeout(() => finish(false), WAIT_MS);
    const repetition = setInterval(() => post({ type: "ready" }), ASK_EVERY_MS);
    onToken = () => finish(true);
    post({ type: "ready" });
  });
  return waiting;
}
