// Shows one screen for the address after `#`. A screen keeps its own state: there is no store.

import { announce } from "./announce.js";
import { fill, h } from "./dom.js";
import { TITLE_PREFIX } from "./domain.js";
import { askToLeave, dropDraft, hasDraft } from "./drafts.js";
import { stateFor } from "./states.js";
import { remark } from "./ui.js";

const PRODUCT = "Private Integrations";
const LOADING_AFTER_MS = 150;

let routes = [];
let main = null;
let currentScreen = new AbortController();
// The notice that the screen of the next address shows.
let pendingNotice = null;

/**
 * Starts with a table of `[pattern, screen]`: pattern as in "/webhooks/:id", screen as
 * `async (params, page) => ({ title, heading?, actions?, parent?, content })`.
 *   title    text, for the tab and the heading
 *   heading  nodes for the heading, if it is more than the title
 *   actions  nodes at the end of the heading's line
 *   parent   `{ href, text }` of the screen above
 *   content  nodes
 *   page     `query` (URLSearchParams of the address), `signal` (aborted when the screen is left), and `refresh` and
 *            `go` as below, which do nothing once the screen is left
 * An `ApiError` that a screen throws shows the state's words with a way out.
 */
export function start(table, element) {
  routes = table.map(([pattern, screen]) => ({ screen, expression: expression(pattern) }));
  main = element;
  addEventListener("hashchange", event => (hasDraft() ? leaveDraft(event) : follow()));
  return show({ focus: element.contains(document.activeElement) ? "heading" : null });
}

/** Goes to a path such as "/keys". The next screen shows the sentence `confirmation` above its content. */
function go(path, confirmation = null) {
  dropDraft();
  const notice = confirmation && { kind: "good", confirmation };
  if (location.hash === `#${path}`) return show({ focus: "heading", notice });
  pendingNotice = notice;
  location.hash = path;
}

/** Leaves everything, and shows the first screen with a notice, as for `go`. */
export function startOver(confirmation) {
  dropDraft();
  history.pushState(null, "", "#/");
  return show({ focus: "heading", notice: { kind: "warn", confirmation } });
}

/**
 * Shows the present screen anew, with focus where it was if that element has an id and is still there. `confirmation`
 * as for `go`; `kind` as for `notice`.
 */
export function refresh(confirmation = null, kind = "good") {
  return show({ focus: document.activeElement?.id || "heading", notice: confirmation && { kind, confirmation } });
}

function follow() {
  const notice = pendingNotice;
  pendingNotice = null;
  return show({ focus: "heading", notice });
}

/** Puts the former address back, and goes to the new one if the coach gives the draft up. */
async function leaveDraft({ oldURL, newURL }) {
  history.replaceState(null, "", oldURL);
  if (await askToLeave()) location.hash = new URL(newURL).hash;
}

async function show({ focus, notice = null }) {
  currentScreen.abort();
  currentScreen = new AbortController();
  const { signal } = currentScreen;
  const timer = setTimeout(() => signal.aborted || showLoading(), LOADING_AFTER_MS);
  const screen = await load(signal);
  clearTimeout(timer);
  if (signal.aborted) return;
  render(screen, focus, notice);
}

async function load(signal) {
  const [path, search] = (location.hash.slice(1) || "/").split("?");
  const page = {
    query: new URLSearchParams(search),
    signal,
    refresh: (...notice) => signal.aborted || refresh(...notice),
    go: (...target) => signal.aborted || go(...target),
  };
  for (const { screen, expression } of routes) {
    const match = expression.exec(path);
    if (!match) continue;
    try {
      return await screen(decoded(match.groups), page);
    } catch (error) {
      // A screen that was left is not shown, whatever became of it.
      return signal.aborted ? null : stateFor(error, () => refresh());
    }
  }
  return stateFor({ kind: "nowhere" });
}

function render({ title, heading, actions, parent, content }, focus, notice) {
  document.title = `${TITLE_PREFIX}${title} · ${PRODUCT}`;
  markPlace(parent?.href ?? (location.hash.slice(1) || "/"));
  const head = h("h1", { tabindex: "-1" }, heading ?? title);
  const confirmation = notice && remark(notice.kind, notice.confirmation);
  const up = parent && h("p", { class: "up" }, h("a", { href: `#${parent.href}` }, parent.text));
  main.removeAttribute("aria-busy");
  fill(main, up, h("div", { class: "title-row" }, head, h("div", { class: "acts" }, actions)), confirmation, content);
  if (confirmation) announce(confirmation.textContent);
  if (focus === null) return;
  const target = document.getElementById(focus) ?? head;
  target.focus();
}

/** Says that another screen is loading. The former screen stays until then. */
function showLoading() {
  main.setAttribute("aria-busy", "true");
  main.querySelector(".loading")?.remove();
  main.prepend(h("p", { class: "loading" }, "Loading…"));
  announce("Loading…");
}

/** Marks the link of the navigation that leads to a path or to what is above it. */
function markPlace(path) {
  const top = `#/${path.slice(1).split(/[/?]/)[0]}`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === top) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

const expression = pattern => new RegExp(`^${pattern.replace(/:(\w+)/g, "(?<$1>[^/]+)")}$`);

function decoded(groups = {}) {
  const decode = text => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  return Object.fromEntries(Object.entries(groups).map(([name, text]) => [name, decode(text)]));
}
