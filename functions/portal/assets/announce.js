// The live region of the page.

import { fill } from "./dom.js";

/** Has screen readers say a sentence. Sighted readers must learn the same from the screen. */
export function announce(text) {
  fill(document.getElementById("status"), text);
}
