// Formats times, numbers and web addresses for people, in the browser's time zone. The page is in English, so numbers
// and dates are too: in the English that the browser prefers.

import { code, h, userText } from "./dom.js";

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
const UNITS = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];
const HOST_LENGTH = 60;

/** Shows a time as date and time of day with its zone; the exact time is in `title`. `null` shows `otherwise`. */
export const time = (iso, otherwise = "never") => (iso ? element(iso, SHORT.format(new Date(iso))) : otherwise);

/** Shows a time relative to now ("3 hours ago", "in 2 days"). `null` shows `otherwise`. */
export const ago = (iso, otherwise = "never") => (iso ? element(iso, relative(new Date(iso))) : otherwise);

/** Shows the day before a time. */
export const dayBefore = iso => element(iso, DAY.format(new Date(iso) - 1));

/** Shows when something is due: "in 5 minutes", or "now" if the time has come. */
export const due = iso => (new Date(iso) > Date.now() ? ago(iso) : element(iso, "now"));

/** "Sat": the day of a `Date`. */
export const weekday = at => WEEKDAY.format(at);

/** "Sat, Nov 28": the day of a `Date`. */
export const day = at => WEEKDAY_AND_DATE.format(at);

/** "6 AM", or "6:30 AM" where the clocks differ by half an hour: the time of a `Date`. */
export const clock = at => (at.getMinutes() ? CLOCK : HOUR).format(at);

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

/** Shows the host of a web address, shortened; the whole address is in `title`. */
export function host(url) {
  const name = URL.canParse(url) ? new URL(url).host : url;
  return userText(name.length > HOST_LENGTH ? `${name.slice(0, HOST_LENGTH)}…` : name, { title: url });
}

/** Shows a whole web address. */
export const address = url => code(url, { class: "address" });

function element(iso, text) {
  return h("time", { datetime: iso, title: EXACT.format(new Date(iso)) }, text);
}

function relative(then) {
  const seconds = Math.round((then - Date.now()) / 1000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? [];
  if (unit) return RELATIVE.format(Math.trunc(seconds / size), unit);
  return seconds > 0 ? "in less than a minute" : "just now";
}
