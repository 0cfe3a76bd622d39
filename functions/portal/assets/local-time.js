// Times of day where the coach is. On a day of 25 hours an hour comes twice: the clock says the same at two instants.

const MINUTE_MS = 60_000;
// Longer than clocks are ever put back.
const AROUND_MS = 3 * 60 * MINUTE_MS;

// Milliseconds from the local time to UTC.
const toUtc = at => new Date(at).getTimezoneOffset() * MINUTE_MS;

/** Returns what the clock says at an instant, to the minute: "2030-12-31T23:59", as `datetime-local` takes it. */
export const wall = at => new Date(new Date(at) - toUtc(at)).toISOString().slice(0, 16);

/** Returns the instants at which the clock says `text`, in milliseconds: one, or two if the time comes twice. */
export function instants(text) {
  const first = new Date(text).getTime();
  const putBack = toUtc(first + AROUND_MS) - toUtc(first - AROUND_MS);
  return putBack > 0 && wall(first + putBack) === wall(first) ? [first, first + putBack] : [first];
}

/** Returns true if the clock says the same at another instant. */
export const comesTwice = at => instants(wall(at)).length > 1;
