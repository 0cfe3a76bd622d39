// Formats times, numbers and web addresses for people, in the browser's language and time zone.

import { code, h, userText } from "./dom.js";

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const SHORT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const NUMBER = new Intl.NumberFormat();
const UNITS = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];
const HOST_LENGTH = 60;

/** Shows a time as date and time of day; the exact time with its zone is in `title`. `null` shows `otherwise`. */
export const time = (iso, otherwise = "never") => (iso ? element(iso, SHORT.format(new Date(iso))) : otherwise);

/** Shows a time relative to now ("3 hours ago", "in 2 days"). `null` shows `otherwise`. */
export const ago = (iso, otherwise = "never") => (iso ? element(iso, relative(new Date(iso))) : otherwise);

/** "1 key", "2 keys": `noun` is the singular, `plural` the plural if it is not `noun` + "s". */
export const count = (number, noun, plural = `${noun}s`) => `${NUMBER.format(number)} ${number === 1 ? noun : plural}`;

/** Joins words as a person would: "a, b and c". */
export const list = words => new Intl.ListFormat("en", { type: "conjunction" }).format(words);

/** "in 340 milliseconds", "in 12 seconds": the duration of an attempt. */
export function duration(ms) {
  return ms < 1000 ? `${NUMBER.format(ms)} milliseconds` : count(Math.round(ms / 100) / 10, "second");
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
