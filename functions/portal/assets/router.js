// Shows one screen for the address after `#`. A screen keeps its own state: there is no store.

import { announce } from "./announce.js";
import { fill, h } from "./dom.js";
import { stateFor } from "./states.js";

const PRODUCT = "Private Integrations";
const LOADING_AFTER_MS = 150;

let routes = [];
let main = null;
let currentScreen = new AbortController();
let notice = null;

/**
 * Starts with a table of `[pattern, screen]`: pattern as in "/webhooks/:id", screen as
 * `async (params, page) => ({ title, heading?, parent?, content })`.
 *   title    text, for the tab and the heading
 *   heading  nodes for the heading, if it is more than the title
 *   parent   `{ href, text }` of the screen above
 *   content  nodes
 *   page     `query` (URLSearchParams of the address), `signal` (aborted when the screen is left), `refresh()`
 * An `ApiError` that a screen throws shows the state's words with a way out.
 */
export function start(table, element) {
  routes = table.map(([pattern, screen]) => ({ screen, expression: expression(pattern) }));
  main = element;
  addEventListener("hashchange", () => show({ focus: "heading" }));
  return show({ focus: null });
}

/** Goes to a path such as "/keys". The next screen shows the sentence `confirmation` above its content. */
export function go(path, confirmation = null) {
  notice = confirmation;
  if (location.hash === `#${path}`) return show({ focus: "heading" });
  location.hash = path;
}

/** Shows the present screen anew, with focus where it was if that element has an id and is still there. */
export function refresh(confirmation = null) {
  notice = confirmation;
  return show({ focus: document.activeElement?.id || "heading" });
}

/** Changes the query of the address (filters) without another entry in the history, and shows the screen anew. */
export function setQuery(query) {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  const [path] = location.hash.split("?");
  history.replaceState(null, "", `${path || "#/"}${search && `?${search}`}`);
  return refresh();
}

async function show({ focus }) {
  currentScreen.abort();
  currentScreen = new AbortController();
  const { signal } = currentScreen;
  const timer = setTimeout(() => signal.aborted || loading(), LOADING_AFTER_MS);
  const screen = await load(signal);
  clearTimeout(timer);
  if (signal.aborted) return;
  render(screen, focus);
}

async function load(signal) {
  const [path, search] = (location.hash.slice(1) || "/").split("?");
  const page = { query: new URLSearchParams(search), signal, refresh };
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

function render({ title, heading, parent, content }, focus) {
  document.title = `${title} · ${PRODUCT}`;
  markPlace();
  const head = h("h1", { tabindex: "-1" }, heading ?? title);
  const confirmation = notice && h("p", { class: "notice good" }, notice);
  notice = null;
  main.removeAttribute("aria-busy");
  fill(main, parent && h("p", { class: "up" }, h("a", { href: `#${parent.href}` }, parent.text)), head, confirmation, content);
  if (confirmation) announce(confirmation.textContent);
  if (focus === null) return;
  const target = document.getElementById(focus) ?? head;
  target.focus();
}

function loading() {
  main.setAttribute("aria-busy", "true");
  if (!main.hasChildNodes()) fill(main, h("p", { class: "loading" }, "Loading…"));
  announce("Loading…");
}

function markPlace() {
  const top = `#/${location.hash.slice(2).split(/[/?]/)[0]}`;
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
