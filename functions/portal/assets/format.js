// Formats times, numbers and web addresses for people, in the browser's time zone. The page is in English, so numbers
// and dates are too: in the English that the browser prefers.

import { code, h } from "./dom.js";
import { comesTwice } from "./local-time.js";
import { now } from "./service-clock.js";

const ENGLISH = navigator.languages.find(language => /^en\b/.test(language)) ?? "en";
const EXACT = new Intl.DateTimeFormat(ENGLISH, { dateStyle: "full", timeStyle: "long" });
const SHORT = new Intl.DateTimeFormat(ENGLISH, {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "numeric",
  minute: "2-digit",
  timeZoneName: "short",
});
const DAY = new Intl.DateTimeFormat(ENGLISH, { dateStyle: "medium" });
// "1 day ago" and not "yesterday": 30 hours ago may be two days back in the calendar.
const RELATIVE = new Intl.RelativeTimeFormat(ENGLISH, { numeric: "always" });
const NUMBER = new Intl.NumberFormat(ENGLISH);
const COMPACT = new Intl.NumberFormat(ENGLISH, { notation: "compact" });
const WEEKDAY = new Intl.DateTimeFormat(ENGLISH, { weekday: "short" });
const WEEKDAY_AND_DATE = new Intl.DateTimeFormat(ENGLISH, { weekday: "short", month: "short", day: "numeric" });
const HOUR = new Intl.DateTimeFormat(ENGLISH, { hour: "numeric" });
const CLOCK = new Intl.DateTimeFormat(ENGLISH, { hour: "numeric", minute: "2-digit" });
const ZONED_CLOCK = new Intl.DateTimeFormat(ENGLISH, { hour: "numeric", minute: "2-digit", timeZoneName: "short" });
const UNITS = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];

/** "Nov 3, 2026, 10:04 AM EST": date and time of day with its zone. */
export const timeText = iso => SHORT.format(new Date(iso));

/** Shows a time as `timeText`; the exact time is in `title`. `null` shows `otherwise`. */
export const time = (iso, otherwise = "never") => (iso ? element(iso, timeText(iso)) : otherwise);

/**
 * Shows how long ago something happened ("3 hours ago"). What the service says has happened is never in the future: its
 * clock is known to the second only.
 */
export const ago = iso => element(iso, relative(Math.min(new Date(iso) - now(), 0)));

/** Shows a time to the second. */
export const exactTime = iso => element(iso, EXACT.format(new Date(iso)));

/** Shows the day of a time. */
export const dayOf = iso => element(iso, DAY.format(new Date(iso)));

/** Shows the day before a time. */
export const dayBefore = iso => element(iso, DAY.format(new Date(iso) - 1));

/** Shows when something is due: "in 5 minutes", or "now" if the time has come. */
export function due(iso) {
  const ahead = new Date(iso) - now();
  return element(iso, ahead > 0 ? relative(ahead) : "now");
}

/** "Sat": the day of a `Date`. */
export const weekday = at => WEEKDAY.format(at);

/** "Sat, Nov 28": the day of a `Date`. */
export const day = at => WEEKDAY_AND_DATE.format(at);

/**
 * "6 AM", or "6:30 AM" where the clocks differ by half an hour: the time of a `Date`. A time that comes twice has its
 * zone: "1:00 AM EDT".
 */
export const clock = at => (comesTwice(at) ? ZONED_CLOCK : at.getMinutes() ? CLOCK : HOUR).format(at);

/** "1:30 AM EDT": a time of day with its zone. */
export const zonedClock = at => ZONED_CLOCK.format(at);

/** "1,200" */
export const number = value => NUMBER.format(value);

/** "1.2K" */
export const compact = value => COMPACT.format(value);

/** "1 key", "2 keys": `noun` is the singular, `plural` the plural if it is not `noun` + "s". */
export const count = (number, noun, plural = `${noun}s`) => `${NUMBER.format(number)} ${number === 1 ? noun : plural}`;

/** Returns a part of a sentence as its beginning. */
export const capital = words => words.charAt(0).toUpperCase() + words.slice(1);

/** Joins words as a person would: "a, b and c". */
export const list = words => new Intl.ListFormat(ENGLISH, { type: "conjunction" }).format(words);

/** "in 340 milliseconds", "in 12 seconds": the duration of an attempt. */
export function duration(ms) {
  return ms < 1000 ? count(ms, "millisecond") : count(Math.round(ms / 100) / 10, "second");
}

/** Returns the host of a web address. */
export const hostName = url => (URL.canParse(url) ? new URL(url).host : url);

/** Shows a whole web address. */
export const address = url => code(url, { class: "address" });

function element(iso, text) {
  return h("time", { datetime: iso, title: EXACT.format(new Date(iso)) }, text);
}

function relative(ms) {
  const seconds = Math.round(ms / 1000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? [];
  if (unit) return RELATIVE.format(Math.trunc(seconds / size), unit);
  return ms > 0 ? "in less than a minute" : "just now";
}
