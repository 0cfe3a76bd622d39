// Follows a delivery that was just ordered, until its attempt has ended.

import { get, isTemporary } from "./api.js";

const EVERY_MS = 1000;
// A receiver has 15 seconds, and the queue takes a moment.
const PATIENCE_MS = 30_000;

/**
 * Waits until the delivery of `source` has another latest attempt than `previousAttempt`, or for 30 seconds. Returns
 * the delivery as it is then, or null if the screen was left.
 */
export async function follow(source, previousAttempt, signal) {
  const end = performance.now() + PATIENCE_MS;
  try {
    for (;;) {
      await pause(signal);
      const isLate = performance.now() > end;
      const delivery = await read(source, signal, isLate);
      const latest = delivery?.attempts.at(-1);
      if ((latest && latest.at !== previousAttempt?.at) || isLate) return delivery;
    }
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  }
}

/** Reads a delivery, or returns null if the next look may succeed. */
const read = (source, signal, isLast) =>
  get(source, {}, signal).catch(error => {
    if (isLast || !isTemporary(error)) throw error;
    return null;
  });

const pause = signal =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, EVERY_MS);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        reject(signal.reason);
      },
      { once: true },
    );
  });
