// The live regions: one of the page, and one of an open dialog, because the page behind a dialog is silent.

import { fill, h } from "./dom.js";

/** Creates the live region of a dialog. */
export const liveRegion = () => h("div", { class: "unseen", role: "status", "aria-live": "polite" });

/** Has screen readers say a sentence. Sighted readers must learn the same from the screen. */
export function announce(text) {
  fill(document.querySelector("dialog[open] > [role=status]") ?? document.getElementById("status"), text);
}
