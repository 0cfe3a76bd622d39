// Dialogs: a question before something ends, and a secret that is shown once.

import { code, h, uniqueId } from "./dom.js";
import { form } from "./forms.js";
import { button, copyButton } from "./ui.js";

const MARGIN = 24;

/**
 * Opens a modal dialog. `content(close)` returns its nodes; `close(value)` closes it. Resolves to the value, or to
 * `undefined` if it was left with Escape. `mustAnswer`: it cannot be left, only closed by `close`.
 */
export function open(title, content, { mustAnswer = false } = {}) {
  return new Promise(resolve => {
    const before = document.activeElement;
    const id = uniqueId("dialog");
    let answer;
    let answered = false;
    const close = value => {
      answer = value;
      answered = true;
      node.close();
    };
    // A question about one screen does not stay over another one.
    const leave = () => mustAnswer || node.close();
    addEventListener("hashchange", leave);
    const node = h(
      "dialog",
      {
        "aria-labelledby": id,
        closedby: mustAnswer ? "none" : "closerequest",
        onkeydown: event => mustAnswer && event.key === "Escape" && event.preventDefault(),
        oncancel: event => mustAnswer && event.preventDefault(),
        onclose: () => {
          if (mustAnswer && !answered) return node.showModal();
          removeEventListener("hashchange", leave);
          node.replaceChildren();
          node.remove();
          document.body.style.minBlockSize = "";
          before?.focus();
          resolve(answer);
        },
      },
      h("h2", { id, tabindex: "-1", autofocus: true }, title),
    );
    node.append(...[content(close)].flat(Infinity).filter(Boolean));
    document.body.append(node);
    node.showModal();
    positionDialog(node, before);
  });
}

/**
 * Asks before something is done. `words`: nodes that say what stops working; `verb`: the button ("Revoke the key");
 * `run(values, once)` does it, and its error is shown in the dialog. Resolves to true once it is done, else to false.
 */
export async function confirm({ title, words, verb, kind = "danger", run }) {
  const done = await open(title, close =>
    form(
      {
        submit: verb,
        kind,
        cancel: button("Cancel", () => close(false)),
        send: async (values, once) => {
          await run(values, once);
          close(true);
        },
      },
      words,
    ),
  );
  return done === true;
}

/**
 * Shows a secret once. `what`: its name ("The key"); `note`: nodes for the developer who gets it. The value is
 * dropped when the dialog closes, and the dialog closes only when the coach says so. `lost`: nodes for a secret that
 * the service shows no more, because the form was sent again too late.
 */
export async function showSecret({ title, what, value, note, lost }) {
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
  const shown = code(value, { class: "secret", tabindex: "0", "aria-label": what });
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
      h("section", { class: "note" }, h("h3", {}, "For your developer"), note),
      h(
        "p",
        { class: "buttons" },
        button("I have stored it", () => close(true), { kind: "main" }),
      ),
    ],
    { mustAnswer: true },
  );
  shown.replaceChildren();
  removeEventListener("beforeunload", warn);
}

// The frame is as high as the page, so the middle of the frame may be out of sight: the dialog opens where the coach
// is.
function positionDialog(node, before) {
  const top = Math.max(MARGIN, (before?.getBoundingClientRect().top ?? 0) - MARGIN * 4);
  if (window.parent === window) return;
  document.body.style.minBlockSize = `${top + node.scrollHeight + 2 * MARGIN}px`;
  node.style.marginBlockStart = `${top}px`;
  node.scrollIntoView({ block: "nearest" });
}
