// The service's time, by the `Date` of its answers: the clock of the browser may be wrong.

// Milliseconds by which the service's clock is ahead of the browser's.
let ahead = 0;

/** Sets the clock by the `Date` of an answer. Without a date it stays as it is, at first as the browser's. */
export function setClock(date) {
  const time = Date.parse(date);
  if (!Number.isNaN(time)) ahead = time - Date.now();
}

/** Returns the service's time, in milliseconds. */
export const now = () => Date.now() + ahead;
