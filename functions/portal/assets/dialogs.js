// Dialogs: a question before something ends, and a secret that is shown once.

import { liveRegion } from "./announce.js";
import { copyButton } from "./copy.js";
import { code, h, uniqueId } from "./dom.js";
import { form } from "./forms.js";
import { FRAMED, focusInSight, follow } from "./frame.js";
import { button, runUnlessBusy } from "./ui.js";

const MARGIN = 24;
const CLOSE_ALL = "closealldialogs";

/** Closes every dialog, even one that must be answered: another coach uses the page now. */
export const closeDialogs = () => dispatchEvent(new Event(CLOSE_ALL));

/**
 * Opens a modal dialog. `content(close, hold)` returns its nodes. `close(value)` closes the dialog; `hold(work)` runs
 * an async function, and until its end only `close` closes the dialog. Resolves to the value, or to `undefined` if the
 * coach left with Escape or went to another screen. `mustAnswer`: only `close` closes the dialog, always.
 */
function open(title, content, { mustAnswer = false } = {}) {
  return new Promise(resolve => {
    const formerFocus = document.activeElement;
    const id = uniqueId("dialog");
    let answer;
    let isHeld;
    const setHeld = held => {
      isHeld = held;
      node.setAttribute("closedby", held ? "none" : "closerequest");
    };
    const close = value => {
      answer = value;
      isHeld = false;
      node.close();
    };
    const hold = async work => {
      setHeld(true);
      await work().finally(() => node.open && setHeld(mustAnswer));
    };
    const closed = new AbortController();
    // A question about one screen does not stay over another one.
    addEventListener("hashchange", () => isHeld || node.close(), closed);
    addEventListener(CLOSE_ALL, () => close(), closed);
    const heading = h("h2", { id, tabindex: "-1" }, title);
    const node = h(
      "dialog",
      {
        "aria-labelledby": id,
        onkeydown: event => isHeld && event.key === "Escape" && event.preventDefault(),
        oncancel: event => isHeld && event.preventDefault(),
        onclose: () => {
          if (isHeld) return node.showModal();
          closed.abort();
          // A button that has just copied keeps its dialog in memory for some seconds, but not a secret in it.
          node.querySelectorAll("code, pre").forEach(text => text.replaceChildren());
          node.replaceChildren();
          node.remove();
          focusInSight(formerFocus?.isConnected ? formerFocus : document.querySelector("h1"));
          resolve(answer);
        },
      },
      heading,
      liveRegion(),
    );
    setHeld(mustAnswer);
    node.append(...[content(close, hold)].flat(Infinity).filter(Boolean));
    if (FRAMED) node.style.insetBlockStart = `${besides(formerFocus)}px`;
    document.body.append(node);
    node.showModal();
    // The browser heeds no `autofocus` in a frame of another origin.
    focusInSight(heading);
    follow(node);
  });
}

/**
 * Opens a dialog with a form: `verb` is its button, `children` hold its fields, and `send(values, once)` is as for
 * `form`. While `send` runs, the dialog cannot be left, so that the coach learns what became of the request. Resolves
 * to true once `send` has succeeded, or to false if the coach left.
 */
export async function ask({ title, verb, kind, send }, ...children) {
  const done = await open(title, (close, hold) => {
    const cancel = button("Cancel", () => close(false));
    const work = async (values, once) => {
      await send(values, once);
      close(true);
    };
    return form(
      { submit: verb, kind, cancel, send: (...sent) => runUnlessBusy(cancel, () => hold(() => work(...sent))) },
      children,
    );
  });
  return done === true;
}

/**
 * Asks before something is done. `words`: nodes that say what stops working; `verb`: the button ("Revoke the key");
 * `run(values, once)` does it, and its error is shown in the dialog. Resolves to true once it is done, else to false.
 */
export const confirm = ({ title, words, verb, kind = "danger", run }) => ask({ title, verb, kind, send: run }, words);

/**
 * Shows a secret once. `what`: its name ("The key"); `note`: nodes under the heading `use`. The dialog closes only when
 * the coach says so, and drops all its `code`. `lost`: nodes for a secret that is shown no more, being asked for late.
 */
export async function showSecret({ title, what, value, use = "For your developer", note, lost }) {
  if (!value)
    return open(title, close => [
      h("p", {}, lost),
      h(
        "p",
        { class: "buttons" },
        button("Close", () => close(true)),
      ),
    ]);
  const warn = event => event.preventDefault();
  addEventListener("beforeunload", warn);
  const shown = code(value, { class: "secret", role: "group", tabindex: "0", "aria-label": what });
  await open(
    title,
    close => [
      h(
        "p",
        {},
        h("strong", {}, "This is shown only now."),
        " Copy it and keep it in a safe place, such as a password manager.",
      ),
      h(
        "div",
        { class: "copyable" },
        shown,
        copyButton(what, () => shown.textContent, shown),
      ),
      h("section", { class: "note flow" }, h("h3", {}, use), note),
      h(
        "p",
        { class: "buttons" },
        button("I have stored it", () => close(true), { kind: "main" }),
      ),
    ],
    { mustAnswer: true },
  );
  removeEventListener("beforeunload", warn);
}

// The middle of the frame may be out of sight, so a dialog lies where the coach is: just above the former focus.
function besides(formerFocus) {
  const { top } = (formerFocus ?? document.body).getBoundingClientRect();
  return Math.max(MARGIN, top + window.scrollY - MARGIN * 4);
}
