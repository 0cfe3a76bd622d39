// Drafts: input of the screen that is not sent yet. The router asks before a coach leaves a draft.

import { confirm } from "./dialogs.js";
import { h } from "./dom.js";

const MARK = "data-draft";

/** Makes `node`, a form or the element that holds its steps, a draft as soon as the coach writes in it. */
export function keepDraft(node) {
  node.addEventListener("input", () => node.setAttribute(MARK, ""));
  return node;
}

const drafts = () => document.querySelectorAll(`main [${MARK}]`);

/** Returns true if the screen holds a draft. */
export const hasDraft = () => drafts().length > 0;

/** Lets the coach leave the screen without a question, because the input is sent or not wanted any more. */
export const dropDraft = () => drafts().forEach(node => node.removeAttribute(MARK));

/** Asks whether the coach wants to leave a draft. Resolves to true or false. */
export const askToLeave = () =>
  confirm({
    title: "Leave without saving?",
    verb: "Leave",
    words: h("p", {}, "What you wrote here is not saved."),
    run: async () => dropDraft(),
  });
