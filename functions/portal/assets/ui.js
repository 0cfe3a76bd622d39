// The parts that screens are made of.

import { announce } from "./announce.js";
import { IdempotentPost } from "./api.js";
import { fill, h, icon } from "./dom.js";
import { sentence } from "./words.js";

const SETTLE_MS = 600;

/**
 * A button that runs `run` once at a time. `kind`: `main`, `danger` or none; `props`: further properties, such as
 * `id`.
 */
export function button(text, run, { kind, ...props } = {}) {
  const node = h("button", { type: "button", class: kind, ...props, onclick: () => runUnlessBusy(node, run) }, text);
  return node;
}

/** Runs `run` unless `node` is busy. A busy button keeps the focus, so it is not `disabled` but `aria-disabled`. */
export async function runUnlessBusy(node, run) {
  if (node.getAttribute("aria-disabled") === "true") return;
  node.setAttribute("aria-disabled", "true");
  try {
    await run();
  } finally {
    node.removeAttribute("aria-disabled");
  }
}

/**
 * A button that does something at once, with its outcome beside it. `run` gets an `IdempotentPost` and the element for
 * words about its progress, and returns the sentence that is shown after success, or nothing. An error is shown with
 * the same button as the way out.
 */
export function action(text, run, options = {}) {
  let once = new IdempotentPost();
  const outcome = h("span", { class: "outcome" });
  const node = button(
    text,
    async () => {
      fill(outcome);
      try {
        const confirmation = await run(once, outcome);
        once = new IdempotentPost();
        if (confirmation) showAndAnnounce(outcome, "good", confirmation);
        // The second click of a double click still finds the button busy.
        await new Promise(resolve => setTimeout(resolve, SETTLE_MS));
      } catch (error) {
        showFailure(outcome, error);
      }
    },
    options,
  );
  return h("span", { class: "action" }, node, outcome);
}

/** Shows a sentence in `resultArea` and has screen readers say it. `kind`: `good`, `bad` or `calm`. */
export function showAndAnnounce(resultArea, kind, text) {
  fill(resultArea, remark(kind, text));
  announce(text);
}

/** Shows and announces an error, unless the error is that the screen was left. */
export function showFailure(resultArea, error) {
  if (error.name === "AbortError") fill(resultArea);
  else showAndAnnounce(resultArea, "bad", sentence(error));
}

/** A link. `href` begins with "#/" for a screen. Other pages open in a new tab, because this one may be framed. */
export function link(href, ...children) {
  const outside = href.startsWith("#") ? {} : { target: "_blank", rel: "noopener" };
  return h(
    "a",
    { href, ...outside },
    ...children,
    outside.target && h("span", { class: "unseen" }, " (opens in a new tab)"),
  );
}

/**
 * A status in a word. `kind`: `good`, `bad`, `warn`, `calm` or `info`; the word says all, colour and sign repeat it.
 */
export const badge = (kind, text) => h("span", { class: `badge ${kind}` }, icon(kind), text);

/** A part of a screen that stands out, with a heading. `kind` as for `badge`. */
export const notice = (kind, title, ...children) =>
  h("section", { class: `callout ${kind}` }, icon(kind), h("div", {}, h("h2", {}, title), children));

/** A sentence that stands out. `kind` as for `badge`. */
export const remark = (kind, ...words) => h("span", { class: `callout ${kind}` }, icon(kind), h("span", {}, words));

/** Says that there is nothing: what that means, and one way out. `sign`: the name of an icon; `title` may be null. */
export const empty = (sign, title, ...children) =>
  h("div", { class: "empty" }, icon(sign), title && h("p", { class: "title" }, title), children);

/** A part of a screen with its heading. */
export const section = (title, ...children) => h("section", {}, h("h2", {}, title), children);

/** A part of a screen with its heading, and a link, buttons or a note at the end of that line. */
export const headed = (title, aside, ...children) =>
  h("section", {}, h("div", { class: "head" }, h("h2", {}, title), aside), children);

/** A link that looks like a button. `kind` as for `button`. */
export const linkButton = (href, text, kind = "") => h("a", { class: `button ${kind}`, href }, text);

/** Words in a list, such as the events of a webhook. */
export const chips = words =>
  h(
    "ul",
    { class: "chips" },
    words.map(word => h("li", { class: "chip" }, word)),
  );

/** Labels with values in a panel: `[[label, value], ...]`; a pair whose value is null is left out. */
export function facts(pairs) {
  const given = pairs.filter(([, value]) => value !== null && value !== undefined && value !== false);
  return h(
    "dl",
    { class: "facts card" },
    given.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))),
  );
}
