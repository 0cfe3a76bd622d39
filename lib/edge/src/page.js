"use strict";
// A double click is one request: the second would end the first, and find the link used. No answer comes after half a minute.
const WAIT_MS = 30000;
let sentAt = -Infinity;
addEventListener("submit", (event) => {
  if (performance.now() - sentAt < WAIT_MS) event.preventDefault();
  else sentAt = performance.now();
});
// A page that comes back with its script as it was, by the browser's back button.
addEventListener("pageshow", (event) => {
  if (event.persisted) sentAt = -Infinity;
});
