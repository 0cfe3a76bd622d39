// Fields for a day or a time. They take years that people mean: a year with a digit too many is refused at the field.

import { failField, field } from "./forms.js";

const FIRST_YEAR = 2000;
const LAST_YEAR = 2100;

/** A field for a day: its value is a text such as "2030-12-31". `min`: the first day that counts. */
export const dayField = ({ min, ...props }) =>
  dateField({ type: "date", min, max: `${LAST_YEAR}-12-31`, earliest: "from tomorrow on", ...props });

/** A field for a time in the browser's zone. Its value is the instant, or null; `iso`: the instant at the start. */
export function timeField({ iso, ...props }) {
  const node = dateField({
    type: "datetime-local",
    min: `${FIRST_YEAR}-01-01T00:00`,
    max: `${LAST_YEAR}-12-31T23:59`,
    earliest: `from the year ${FIRST_YEAR} on`,
    value: iso ? local(iso) : "",
    read: () => instant(node.querySelector("input").value),
    ...props,
  });
  return node;
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

const instant = text => (text ? new Date(text).toISOString() : null);

/** Returns an instant as a local date and time, as `datetime-local` takes it. */
function local(iso) {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return "";
  return new Date(time - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
