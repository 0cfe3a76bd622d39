// The coach's session: a token in memory alone, from the application's page that frames this one, or from the address.

const ORIGIN = document.querySelector("meta[name=application-origin]").content;

/** True if another page frames this one. That page gives the session. */
export const FRAMED = window.parent !== window;
const WAIT_MS = 8000;
const ASK_EVERY_MS = 1000;

let token = null;
let waiting = null;
// Called when the application gives a token. A token that comes too late waits for the next `start` or `renew`.
let onToken = () => {};

/** Waits for the session. Returns true if there is one. */
export async function start() {
  if (token !== null || takeFromAddress()) return true;
  return FRAMED && (await ask());
}

/** Returns the token of the session, or null. Never store it or put it into an address. */
export const current = () => token;

/**
 * Replaces a token that was refused: asks the application once, for all requests that were refused meanwhile. Returns
 * true if there is another token now.
 */
export async function renew(refused) {
  if (waiting) return waiting;
  if (token !== null && token !== refused) return true;
  token = null;
  return FRAMED && (await ask()) && token !== refused;
}

/** Takes `#token=...` and removes it from the address and the history. Returns true if there was one. */
export function takeFromAddress() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!found) return false;
  token = found;
  history.replaceState(null, "", location.pathname + location.search);
  return true;
}

/** Tells the application the page's height, now and whenever it changes. */
export function reportHeight() {
  if (!FRAMED) return;
  let last = 0;
  const report = () => {
    const height = Math.ceil(document.body.getBoundingClientRect().height);
    if (height === last) return;
    last = height;
    post({ type: "resize", height });
  };
  new ResizeObserver(report).observe(document.body);
}

addEventListener("message", event => {
  const isWanted = FRAMED && (waiting || token === null);
  if (!isWanted || event.origin !== ORIGIN || event.source !== window.parent) return;
  const message = event.data;
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

// A parent of another origin gets nothing: the browser drops the message.
const post = message => window.parent.postMessage(message, ORIGIN);
