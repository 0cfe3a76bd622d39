// Every page: tabs, copying, the menu, the place that is read, and what opens the search and the console. Each page can
// be read without it.
"use strict";

const root = document.documentElement;
root.classList.add("js");

const COPIED_MS = 2000;
const all = (selector, from = document) => [...from.querySelectorAll(selector)];

/** Creates an element with attributes (`on<event>`: a listener) and children. */
function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// Storage can be switched off. The choice then holds for the page.
const choices = {
  read(name) {
    try { return localStorage.getItem(name); } catch { return null; }
  },
  keep(name, value) {
    try { localStorage.setItem(name, value); } catch { /* The choice holds for the page. */ }
  },
};

/** Loads a script once, when it is needed. */
const loaded = new Map();
function load(src) {
  const start = () => new Promise((done, failed) => document.head.append(h("script", { src, onload: done, onerror: failed })));
  if (!loaded.has(src)) loaded.set(src, start());
  loaded.get(src).catch(() => loaded.delete(src));
  return loaded.get(src);
}

// Tabs: the titles of the panels become the tabs. Groups that are in step change together.
const groups = [];

function makeTabs(box) {
  const panels = all(":scope > .panel", box);
  const list = h("div", { role: "tablist", "aria-label": box.dataset.label });
  const tabs = panels.map((panel, at) => {
    const tab = h("button", { type: "button", role: "tab", id: `${panel.id}-tab`, "aria-controls": panel.id });
    tab.append(...[...panel.firstElementChild.childNodes].map((node) => node.cloneNode(true)));
    tab.addEventListener("click", () => choose(at));
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    // What the browser finds in a hidden panel opens its tab.
    panel.addEventListener("beforematch", () => choose(at));
    return tab;
  });
  const names = tabs.map((tab) => tab.textContent.trim());
  const select = (name) => {
    const chosen = Math.max(0, names.indexOf(name));
    tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", at === chosen);
      tab.tabIndex = at === chosen ? 0 : -1;
      if (at === chosen) panels[at].removeAttribute("hidden");
      else panels[at].setAttribute("hidden", "until-found");
    });
  };
  const choose = (at) => {
    const before = list.getBoundingClientRect().top;
    const { sync } = box.dataset;
    if (sync) choices.keep(sync, names[at]);
    const others = sync ? groups.filter((group) => group.sync === sync && group.names.includes(names[at])) : [];
    for (const group of others.length ? others : [{ select }]) group.select(names[at]);
    // Groups above change their height: the one that the reader uses stays where it is.
    scrollBy({ top: list.getBoundingClientRect().top - before, behavior: "instant" });
    markScrolling();
  };
  list.addEventListener("keydown", (event) => {
    const at = tabs.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const to = (next + tabs.length) % tabs.length;
    tabs[to].focus();
    choose(to);
  });
  list.append(...tabs);
  box.prepend(h("div", { class: "bar" }, list));
  box.classList.add("ready");
  groups.push({ sync: box.dataset.sync, names, select });
  select(box.dataset.sync ? choices.read(box.dataset.sync) : undefined);
}

// Browsers offer the clipboard on https only.
function offerCopying(box) {
  const bar = box.querySelector(":scope > :is(.bar, figcaption)");
  if (!navigator.clipboard || !bar || !box.querySelector("pre")) return;
  const button = h("button", { type: "button", class: "copy", "aria-live": "polite" }, "Copy");
  button.addEventListener("click", async () => {
    const shown = all("pre", box).find((pre) => !pre.closest("[hidden]"));
    // A line end behind a command would run it when it is pasted into a terminal.
    const copied = navigator.clipboard.writeText(shown.textContent.trimEnd());
    button.textContent = await copied.then(() => "Copied", () => "Not copied");
    setTimeout(() => { button.textContent = "Copy"; }, COPIED_MS);
  });
  bar.append(button);
}

// Only what scrolls needs a stop of the keyboard.
function markScrolling() {
  for (const box of all("pre, .table")) {
    if (box.clientWidth === 0) continue;
    const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
    if (scrolls) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

// The place that is read is marked in the navigation, and in the list of what is on the page.
function followReading() {
  const links = all("[data-spy] a[href^='#']").map((link) => ({ link, target: document.getElementById(link.hash.slice(1)) }));
  const marked = links.filter(({ link, target }) => target && !link.matches(".close"));
  if (!marked.length) return;
  let isWaiting = false;
  const mark = () => {
    isWaiting = false;
    const tops = marked.map(({ target }) => target.getBoundingClientRect().top);
    const isEnd = scrollY > 0 && innerHeight + scrollY >= root.scrollHeight - 2;
    const read = Math.max(...tops.filter((top) => top <= innerHeight * 0.3 || isEnd));
    marked.forEach(({ link }, at) => {
      if (tops[at] !== read) link.removeAttribute("aria-current");
      else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        reveal(link);
      }
    });
  };
  addEventListener("scroll", () => { isWaiting ||= Boolean(requestAnimationFrame(mark)); }, { passive: true });
  mark();
}

/** Scrolls a list so far that the link is seen. */
function reveal(link) {
  const list = link.closest("nav");
  const at = link.getBoundingClientRect().top - list.getBoundingClientRect().top;
  if (at < 40 || at > list.clientHeight - 80) list.scrollTop += at - list.clientHeight / 2;
}

/** Puts a button in the place of a link that leads to the same without script. */
function buttonFor(link, attributes) {
  const button = h("button", { type: "button", class: link.className.replace("button", "").trim(), ...attributes });
  button.append(...link.childNodes);
  link.replaceWith(button);
  return button;
}

// On narrow screens, the navigation is a sheet over the page.
function makeMenu() {
  const pages = document.getElementById("pages");
  const button = buttonFor(document.querySelector("a.menu"), { "aria-expanded": "false", "aria-controls": "pages" });
  const set = (isOpen) => {
    pages.classList.toggle("open", isOpen);
    button.setAttribute("aria-expanded", isOpen);
    for (const other of all("main, .foot")) other.inert = isOpen;
    if (isOpen) pages.focus();
  };
  button.addEventListener("click", () => set(!pages.classList.contains("open")));
  pages.addEventListener("click", (event) => { if (event.target.closest("a")) set(false); });
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !pages.classList.contains("open")) return;
    set(false);
    button.focus();
  });
  matchMedia("(min-width: 56.25rem)").addEventListener("change", () => set(false));
}

// The search opens as a dialog. The link leads to its page.
function offerSearch() {
  const link = document.querySelector("a.seek");
  link.append(h("kbd", {}, "Ctrl K"));
  const page = link.href;
  const isPage = link.hasAttribute("aria-current");
  const open = () => {
    if (isPage) return document.querySelector("input[name=q]").focus();
    load("/docs/search.js").then(() => window.openSearch(), () => { location.href = page; });
  };
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  link.setAttribute("aria-keyshortcuts", "/ Control+K Meta+K");
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select");
    const isAsked = (event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !isTyping);
    if (!isAsked) return;
    event.preventDefault();
    open();
  });
}

// The console sends requests to the API, so it needs a page that the API itself serves.
function offerConsole() {
  if (document.body.dataset.base !== location.origin) return;
  for (const button of all(".try")) {
    button.hidden = false;
    button.addEventListener("click", () => load("/docs/console.js").then(() => window.openConsole(button)));
  }
}

addEventListener("DOMContentLoaded", () => {
  all(".tabs").forEach(makeTabs);
  all(".code").forEach(offerCopying);
  makeMenu();
  offerSearch();
  offerConsole();
  followReading();
  const current = document.querySelector("#pages [aria-current='page']");
  if (current && current.closest("nav").scrollHeight > current.closest("nav").clientHeight) reveal(current);
  markScrolling();
  addEventListener("resize", markScrolling);
});
