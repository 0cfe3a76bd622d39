// Copies a text for the coach.

import { announce } from "./announce.js";
import { fill, icon } from "./dom.js";
import { button } from "./ui.js";

const COPIED_MS = 3000;

/**
 * A button that copies `text()`, or nothing where there is no clipboard. `what` names the text ("The key");
 * `selectable` is selected if the browser refuses.
 */
export function copyButton(what, text, selectable, kind = "") {
  if (!navigator.clipboard) return null;
  const name = word => {
    fill(node, icon("copy"), word);
    node.setAttribute("aria-label", `${word}: ${what}`);
  };
  const node = button(
    "",
    async () => {
      const copied = await copy(text(), selectable);
      name(copied ? "Copied" : "Selected: copy it now");
      announce(copied ? `${what} is copied.` : `${what} is selected. Copy it with the keyboard.`);
      setTimeout(() => name("Copy"), COPIED_MS);
    },
    { kind: `copy ${kind}` },
  );
  name("Copy");
  return node;
}

// A frame may copy only if its parent allows it. A selection can be copied everywhere.
async function copy(text, selectable) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(selectable);
    return document.execCommand("copy");
  }
}
