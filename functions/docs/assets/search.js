// The search page: finds sections whose title or text has all words of the query.
"use strict";

const INDEX = "/docs/search-index.json";
const MOST_RESULTS = 30;
// Points of a word in a section's title, in its page's title, and for each time that the text has the word.
const IN_TITLE = 10;
const IN_PAGE = 6;
const IN_TEXT = 1;
const MOST_IN_TEXT = 5;
// Results follow the typing after a pause, so that screen readers announce each once.
const PAUSE_MS = 250;

const wordsOf = (text) => text.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean);
const input = document.querySelector("input[name=q]");
const results = document.getElementById("results");
const status = document.getElementById("search-status");

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
  const words = wordsOf(query);
  const found = [];
  for (const entry of index) {
    const points = words.map((word) => pointsOfEither(word, entry));
    // The product prefers a section that is about each word to one that is about some of them.
    const product = points.reduce((product, one) => product * one, words.length && 1);
    if (product) found.push({ entry, points: product });
  }
  return found.sort((one, other) => other.points - one.points).slice(0, MOST_RESULTS);
}

function show(found, query) {
  results.replaceChildren(...found.map(({ entry: { shown: [page, title, link, excerpt] } }) => {
    const item = document.createElement("li");
    const anchor = document.createElement("a");
    anchor.href = link;
    anchor.textContent = title === page ? page : `${page}: ${title}`;
    const text = document.createElement("p");
    text.textContent = excerpt;
    item.append(anchor, text);
    return item;
  }));
  const number = found.length === 1 ? "1 section" : `${found.length}${found.length === MOST_RESULTS ? " or more" : ""} sections`;
  status.textContent = wordsOf(query).length ? `${number} for “${query}”` : "";
}

async function start() {
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  const answer = await fetch(INDEX);
  if (!answer.ok) throw new Error(`The index is answered with ${answer.status}`);
  const index = (await answer.json()).map((shown) => {
    const [page, title, , , words] = shown;
    const counted = words.split(" ").map((word) => word.split("*")).map(([word, count]) => [word, Number(count ?? 1)]);
    return { shown, page: wordsOf(page), title: wordsOf(title), words: counted };
  });
  const update = () => {
    show(find(index, input.value), input.value);
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

start().catch(() => { status.textContent = "The search cannot be loaded. Please reload the page."; });
