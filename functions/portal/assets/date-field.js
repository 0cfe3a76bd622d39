// Fields for a day or a time. They take years that people mean: a year with a digit too many is refused at the field.

import { announce } from "./announce.js";
import { fill, h, uniqueId } from "./dom.js";
import { zonedClock } from "./format.js";
import { failField, field } from "./forms.js";
import { instants, wall } from "./local-time.js";

const FIRST_YEAR = 2000;
const LAST_YEAR = 2100;

/** A field for a day: its value is a text such as "2030-12-31". `min`: the first day that counts. */
export const dayField = ({ min, ...props }) =>
  dateField({ type: "date", min, max: `${LAST_YEAR}-12-31`, earliest: "from tomorrow on", ...props });

// What cannot be seen in a narrow field is at the end.
const ORDER = ["the first", "the second"];

/**
 * A field for a time in the browser's zone, and the question which of two instants is meant if the time comes twice. Its
 * value is the instant, or null; `iso`: the instant at the start. It stays to the millisecond if nothing is changed.
 */
export function timeField({ iso, label, ...props }) {
  const start = new Date(iso ?? NaN);
  const minute = new Date(start).setSeconds(0, 0);
  const which = h("select", { id: uniqueId("which"), "aria-describedby": uniqueId("which-hint") });
  const question = h(
    "div",
    { class: "field" },
    h("label", { for: which.id }, `“${label}”: which of the two?`),
    h("p", { id: which.getAttribute("aria-describedby"), class: "hint" }, "The time comes twice: the clocks are put back."),
    which,
  );
  const node = dateField({
    type: "datetime-local",
    label,
    min: `${FIRST_YEAR}-01-01T00:00`,
    max: `${LAST_YEAR}-12-31T23:59`,
    earliest: `from the year ${FIRST_YEAR} on`,
    value: Number.isNaN(minute) ? "" : wall(minute),
    read: () => {
      const chosen = found()[Math.max(which.selectedIndex, 0)];
      if (chosen === undefined) return null;
      return new Date(chosen === minute ? start : chosen).toISOString();
    },
    ...props,
  });
  const control = node.querySelector("input");
  const found = () => (control.value ? instants(control.value) : []);
  const option = (at, index) => h("option", { selected: at === minute }, `${zonedClock(at)}, ${ORDER[index]}`);
  const ask = () => {
    question.hidden = found().length < 2;
    fill(which, !question.hidden && found().map(option));
  };
  ask();
  control.addEventListener("input", () => {
    ask();
    if (!question.hidden) announce(question.querySelector("label").textContent);
  });
  return [node, question];
}

/** `earliest`: the rule of `min`, in words. */
function dateField({ earliest, ...props }) {
  const node = field({ ...props, hint: `Years up to ${LAST_YEAR}.` });
  const control = node.querySelector("input");
  control.addEventListener("invalid", event => {
    const { rangeUnderflow, rangeOverflow, badInput } = control.validity;
    if (!rangeUnderflow && !rangeOverflow && !badInput) return;
    event.preventDefault();
    const rule = rangeUnderflow ? `Choose a date ${earliest}.` : `Choose a date up to the year ${LAST_YEAR}.`;
    failField(node, badInput ? "This date is not whole, or does not exist." : rule);
  });
  return node;
}
