// A panel of code with tabs. Each text can be copied as it is.

import { copyButton } from "./copy.js";
import { fill, h, uniqueId } from "./dom.js";

const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

/**
 * `label` names the tabs. `parts`: `[{ title, name, text?, content, place? }]`, with the title of the tab, the name of
 * its text, the text to copy if it is another than the one shown, nodes that show it, and words on where it goes.
 */
export function codePanel(label, parts) {
  const tabs = parts.map(({ title }, at) =>
    h("button", { type: "button", role: "tab", id: uniqueId("tab"), onclick: () => select(at) }, title),
  );
  const texts = parts.map(({ name, content }) =>
    h("pre", { dir: "ltr", tabindex: "0", role: "group", "aria-label": name, oncopy: copySelection }, content),
  );
  const panels = parts.map(({ title, place }, at) =>
    h(
      "div",
      { class: "panel", role: "tabpanel", id: uniqueId("panel"), "aria-labelledby": tabs[at].id },
      h("p", { class: "panel-title" }, title),
      place && h("p", { class: "place" }, place),
      texts[at],
    ),
  );
  const copy = h("span", { class: "copy" });
  const select = at => {
    for (const [other, tab] of tabs.entries()) {
      tab.setAttribute("aria-selected", String(other === at));
      tab.tabIndex = other === at ? 0 : -1;
      panels[other].hidden = other !== at;
    }
    fill(
      copy,
      copyButton(parts[at].name, () => parts[at].text ?? texts[at].textContent, texts[at]),
    );
  };
  const move = event => {
    const last = tabs.length - 1;
    const present = tabs.indexOf(event.target);
    const to =
      { Home: 0, End: last }[event.key] ??
      (STEPS[event.key] && (present + STEPS[event.key] + tabs.length) % tabs.length);
    if (to === undefined) return;
    event.preventDefault();
    select(to);
    tabs[to].focus();
  };
  tabs.forEach((tab, at) => tab.setAttribute("aria-controls", panels[at].id));
  select(0);
  const bar = h(
    "div",
    { class: "bar" },
    h("div", { role: "tablist", "aria-label": label, onkeydown: move }, tabs),
    copy,
  );
  return h("div", { class: "code tabs ready" }, bar, panels);
}

/** Copies what is selected without the breaks that only the screen has. */
function copySelection(event) {
  event.clipboardData.setData("text/plain", getSelection().getRangeAt(0).cloneContents().textContent);
  event.preventDefault();
}
