// Every page: buttons that copy code, and one language for all samples.
"use strict";

const LANGUAGE = "language";
const COPIED_MS = 2000;

// Storage can be switched off. The choice then holds for the page.
function stored() {
  try { return localStorage.getItem(LANGUAGE); } catch { return null; }
}

function store(language) {
  try { localStorage.setItem(LANGUAGE, language); } catch { /* The choice holds for the page. */ }
}

const samples = [...document.querySelectorAll(".sample")];
const languageOf = (sample) => sample.firstElementChild.textContent;

function show(language) {
  if (samples.some((sample) => languageOf(sample) === language)) {
    for (const sample of samples) sample.open = languageOf(sample) === language;
  }
}

for (const sample of samples) {
  sample.firstElementChild.addEventListener("click", (event) => {
    if (sample.open) return;
    event.preventDefault();
    const before = sample.getBoundingClientRect().top;
    show(languageOf(sample));
    store(languageOf(sample));
    markScrolling();
    // Samples above change their height.
    window.scrollBy(0, sample.getBoundingClientRect().top - before);
  });
}
show(stored());

// Browsers offer the clipboard on https only.
const boxes = navigator.clipboard ? document.querySelectorAll(".code") : [];
for (const code of boxes) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    // A line end behind a command would run it when it is pasted into a terminal.
    const copied = navigator.clipboard.writeText(code.querySelector("code").textContent.trimEnd());
    button.textContent = await copied.then(() => "Copied", () => "Not copied");
    setTimeout(() => { button.textContent = "Copy"; }, COPIED_MS);
  });
  code.append(button);
}

// Only what scrolls needs a stop of the keyboard.
function markScrolling() {
  for (const box of document.querySelectorAll("pre, .table")) {
    if (box.clientWidth === 0) continue;
    const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
    if (scrolls) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

addEventListener("resize", markScrolling);
markScrolling();
