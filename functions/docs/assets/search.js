// The search, as a page and as a dialog: finds sections whose title or text has all words of the query.
"use strict";

const INDEX = "/docs/search-index.json";
const MOST_RESULTS = 30;
const MOST_IN_DIALOG = 12;
// Points of a word in a section's title, in its page's title, and for each time that the text has the word.
const IN_TITLE = 10;
const IN_PAGE = 6;
const IN_TEXT = 1;
const MOST_IN_TEXT = 5;
// Results follow the typing after a pause, so that screen readers announce each once.
const PAUSE_MS = 250;

const wordsOf = (text) => text.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean);

// Words that the index leaves out.
const COMMON = new Set(
  `a after again all also always an and another are as at be because been before but by can could do
  does each for from has have how if in into is it its may never none not of on once one only or other
  s same since than that the their them then there these they this those to too was were what when
  which while who will with you your`.split(/\s+/),
);

// Words of readers, and beginnings of the words that these pages have for the same.
const OTHER_WORDS = new Map([
  ["authenticate", "get key"],
  ["authentication", "get key"],
  ["canceled", "cancelled"],
  ["cancellation", "cancel"],
  ["gdpr", "eras"],
  ["pagination", "page list"],
  ["privacy", "eras"],
  ["throttling", "rate limit"],
  ["timeout", "answer within"],
  ["unsubscribe", "delete webhook"],
]);

// A reader who asks for "limits" looks for "limit", too.
const stem = (word) => (word.length > 3 ? word.replace(/s$/, "") : word);

function pointsOf(word, entry) {
  const has = (words) => words.some((other) => other.startsWith(word));
  const counts = entry.words.filter(([other]) => other.startsWith(word)).map(([, count]) => count * IN_TEXT);
  const inText = Math.min(counts.reduce((sum, one) => sum + one, 0), MOST_IN_TEXT);
  return (has(entry.title) ? IN_TITLE : 0) + (has(entry.page) ? IN_PAGE : 0) + inText;
}

// The points of a word, or of what these pages say instead, of which each word has to be there.
function pointsOfEither(word, entry) {
  const others = wordsOf(OTHER_WORDS.get(stem(word)) ?? "").map((other) => pointsOf(other, entry));
  const average = others.includes(0) ? 0 : others.reduce((sum, one) => sum + one, 0) / (others.length || 1);
  return Math.max(pointsOf(stem(word), entry), average);
}

function find(index, query) {
  const all = wordsOf(query);
  const words = all.some((word) => !COMMON.has(word)) ? all.filter((word) => !COMMON.has(word)) : all;
  const found = [];
  for (const entry of index) {
    const points = words.map((word) => pointsOfEither(word, entry));
    // The product prefers a section that is about each word to one that is about some of them.
    const product = points.reduce((product, one) => product * one, words.length && 1);
    if (product) found.push({ entry, points: product });
  }
  return found.sort((one, other) => other.points - one.points).slice(0, MOST_RESULTS);
}

let loading;
function readIndex() {
  const read = async () => {
    const answer = await fetch(INDEX);
    if (!answer.ok) throw new Error(`The index is answered with ${answer.status}`);
    return (await answer.json()).map((shown) => {
      const [page, title, , , words] = shown;
      const counted = words.split(" ").map((word) => word.split("*")).map(([word, count]) => [word, Number(count ?? 1)]);
      return { shown, page: wordsOf(page), title: wordsOf(title), words: counted };
    });
  };
  loading ??= read();
  loading.catch(() => { loading = undefined; });
  return loading;
}

/** The text, with the first word of the query that it has as `mark`. */
function marked(text, query) {
  const word = wordsOf(query).map(stem).find((one) => text.toLowerCase().includes(one));
  if (!word) return [text];
  const at = text.toLowerCase().indexOf(word);
  return [text.slice(0, at), h("mark", {}, text.slice(at, at + word.length)), text.slice(at + word.length)];
}

const nameOf = ([page, title]) => (title === page ? page : `${page}: ${title}`);

function inWords(found, query) {
  if (!wordsOf(query).length) return "";
  const number = found.length === 1 ? "1 section" : `${found.length}${found.length === MOST_RESULTS ? " or more" : ""} sections`;
  return `${number} for “${query}”`;
}

async function startPage() {
  const input = document.querySelector("input[name=q]");
  const results = document.getElementById("results");
  const status = document.getElementById("search-status");
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  const index = await readIndex().catch(() => undefined);
  if (!index) {
    status.textContent = "The search cannot be loaded. Please reload the page.";
    return;
  }
  const update = () => {
    const found = find(index, input.value);
    results.replaceChildren(...found.map(({ entry: { shown } }) => {
      const [, , link, excerpt] = shown;
      return h("li", {}, h("a", { href: link }, ...marked(nameOf(shown), input.value)), h("p", {}, ...marked(excerpt, input.value)));
    }));
    status.textContent = inWords(found, input.value);
    // The address leads to the same results, also after a visit to one of them.
    const address = new URL(location);
    if (input.value) address.searchParams.set("q", input.value);
    else address.searchParams.delete("q");
    history.replaceState(null, "", address);
  };
  let waiting;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(update, PAUSE_MS);
  });
  update();
  if (!input.value) input.focus();
}

function makeDialog() {
  const list = h("ul", { role: "listbox", id: "found", "aria-label": "Sections" });
  const input = h("input", {
    type: "text", role: "combobox", "aria-label": "Search the documentation", "aria-controls": "found", "aria-expanded": "true",
    "aria-autocomplete": "list", autocomplete: "off", placeholder: "Guides, operations, events, codes",
  });
  const hint = h("p", { class: "hint", role: "status" });
  const form = h("form", { method: "dialog" }, input, h("button", { class: "bare" }, "Close"));
  const dialog = h("dialog", { class: "search", "aria-label": "Search" }, form, list, hint);
  let at = 0;

  const go = (item) => {
    dialog.close();
    location.href = item.dataset.href;
  };
  const select = (next) => {
    at = next;
    [...list.children].forEach((item, place) => item.setAttribute("aria-selected", place === at));
    input.setAttribute("aria-activedescendant", list.children[at]?.id ?? "");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };
  const option = ({ entry: { shown } }, place) => {
    const [, , link, excerpt] = shown;
    const item = h("li", { role: "option", id: `found-${place}`, "data-href": link });
    item.append(h("b", {}, ...marked(nameOf(shown), input.value)), h("p", {}, ...marked(excerpt, input.value)));
    item.addEventListener("click", () => go(item));
    item.addEventListener("pointermove", () => { if (at !== place) select(place); });
    return item;
  };
  const show = async () => {
    const index = await readIndex().catch(() => undefined);
    if (!index) {
      hint.textContent = "The search cannot be loaded. Please try again.";
      return;
    }
    const found = find(index, input.value);
    list.replaceChildren(...found.slice(0, MOST_IN_DIALOG).map(option));
    hint.textContent = inWords(found, input.value) || "↑ ↓ to choose, Enter to open, Esc to close";
    select(0);
  };
  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const number = list.children.length;
    if (step && number) select((at + step + number) % number);
    if (event.key === "Enter" && number) go(list.children[at]);
    if (step || event.key === "Enter") event.preventDefault();
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  return () => {
    if (!dialog.open) dialog.showModal();
    input.select();
    show();
  };
}

if (document.getElementById("results")) startPage();
else window.openSearch = makeDialog();
