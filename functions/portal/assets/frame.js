// The page in the application's frame: its messages, its height, and the focus in sight.
//
// The frame is as high as the page, so `position: fixed` means nothing there: dialogs lie in the page, and the page's
// height covers them.

const ORIGIN = document.querySelector("meta[name=application-origin]").content;
// Space below a dialog, in pixels.
const MARGIN = 48;

/** True if another page frames this one. That page gives the session. */
export const FRAMED = window.parent !== window;

/** Sends a message to the application. A parent of another origin gets nothing: the browser drops the message. */
export const post = message => window.parent.postMessage(message, ORIGIN);

/** Calls `listener` with each message of the application. */
export function onMessage(listener) {
  if (!FRAMED) return;
  addEventListener("message", ({ origin, source, data }) => {
    if (origin === ORIGIN && source === window.parent) listener(data);
  });
}

const dialogs = () => [...document.querySelectorAll("dialog[open]")];

const bottom = node => node.getBoundingClientRect().bottom + window.scrollY;

let reported = 0;

/** Tells the application the page's height, and keeps the focus within an open dialog in sight. */
function report() {
  const height = Math.ceil(Math.max(bottom(document.body), ...dialogs().map(dialog => bottom(dialog) + MARGIN)));
  if (FRAMED && height !== reported) post({ type: "resize", height });
  reported = height;
  dialogs().at(-1)?.querySelector(":focus")?.scrollIntoView({ block: "nearest" });
}

/** Gives an element the focus and scrolls there, even if it has the focus already. */
export function focusInSight(node) {
  node?.focus();
  node?.scrollIntoView({ block: "nearest" });
}

const observer = new ResizeObserver(report);

/** Follows the size of a dialog until it is removed. */
export const follow = dialog => observer.observe(dialog);

document.documentElement.classList.toggle("framed", FRAMED);
observer.observe(document.body);
// The application has given the frame its height, or a phone was turned.
addEventListener("resize", report);
