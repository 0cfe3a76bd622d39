// Draws bars: delivered events upwards, failed tries downwards and hatched.

import { svg, uniqueId } from "./dom.js";
import { compact, count, number, weekday } from "./format.js";

// Pixels.
const TOP = 8;
const HEIGHT = 132;
const TICKS = 24;
const LEAST_SIDE = 24;
const LEAST_BAR = 3;
// The part of its place that a bar fills.
const FILLED = 0.72;
const ROUNDING = 2;
// Ends of an axis, times a power of ten.
const ENDS = [1, 1.2, 1.5, 2, 3, 4, 5, 6, 8, 10];

/**
 * Draws the bars of `parts`, `[{ at, delivered, failed }]`. `name(at)` names one; `tick(at)` is the text below it, or
 * false. Places along the line are percentages, so that texts keep their size at any width.
 */
export function plot(parts, name, tick) {
  const [up, down] = ["delivered", "failed"].map(side => roundUp(Math.max(...parts.map(part => part[side]))));
  const least = most => (most ? LEAST_SIDE : 0);
  const upHeight = Math.min(Math.max((HEIGHT * up) / (up + down), least(up)), HEIGHT - least(down));
  const line = TOP + upHeight;
  const end = TOP + HEIGHT;
  const hatch = uniqueId("hatch");
  const level = (y, value) => [
    svg("line", { x1: 0, x2: "100%", y1: y, y2: y, class: value ? null : "zero" }),
    svg("text", { x: "100%", y, dx: 6, dy: 4 }, compact(value)),
  ];
  const column = 100 / parts.length;
  const bar = (part, at) => {
    const place = { x: percent(column * (at + (1 - FILLED) / 2)), width: percent(column * FILLED) };
    const rise = length(part.delivered, up, upHeight);
    const fall = length(part.failed, down, HEIGHT - upHeight);
    return svg(
      "g",
      {},
      svg(
        "title",
        {},
        `${name(part.at)}: ${number(part.delivered)} delivered, ${count(part.failed, "failed try", "failed tries")}`,
      ),
      svg("rect", { x: percent(column * at), width: percent(column), y: TOP, height: HEIGHT, class: "place" }),
      rise > 0 && svg("rect", { ...place, y: line - rise, height: rise, rx: ROUNDING, class: "delivered" }),
      fall > 0 && svg("rect", { ...place, y: line, height: fall, class: "failed", fill: `url(#${hatch})` }),
    );
  };
  const mark = ({ at }, index) => {
    const begins = beginsDay(at, parts[index - 1]?.at);
    const text = begins ? weekday(at) : tick(at);
    const x = percent(column * index);
    if (!text) return null;
    return [
      svg("line", { x1: x, x2: x, y1: begins ? TOP : end, y2: end + 6 }),
      svg("text", { x, y: end, dx: 4, dy: 17 }, text),
    ];
  };
  return svg(
    "svg",
    { class: "plot", "aria-hidden": "true", height: TOP + HEIGHT + TICKS },
    svg(
      "pattern",
      { id: hatch, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("rect", { width: 2, height: 5, class: "hatch" }),
    ),
    parts.map(mark),
    up > 0 && level(TOP, up),
    down > 0 && level(end, down),
    parts.map(bar),
    level(line, 0),
  );
}

const percent = value => `${value.toFixed(3)}%`;

const length = (value, most, pixels) => (value ? Math.max((value / most) * pixels, LEAST_BAR) : 0);

const beginsDay = (at, before) => (before ? at.toDateString() !== before.toDateString() : at.getHours() === 0);

/** Returns the next number that is easy to read. */
function roundUp(value) {
  if (!value) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  return ENDS.map(end => end * power).find(rounded => rounded >= value);
}
