// The settings API: requests with the coach's session, refusals as `ApiError`, and requests that happen once.

import * as coach from "./coach.js";
import { content, request } from "./request.js";

/** Returns true if the same request may succeed a moment later. */
export const isTemporary = error => ["offline", "limit", "unavailable"].includes(error.kind);

/** GET. Values of `query` that are null, undefined or empty are left out. */
export function get(path, query = {}, signal = undefined) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return send("GET", search ? `${path}?${search}` : path, undefined, { signal });
}

/**
 * GET of a page of a list: `{ items, next }`. A page before the end may be short or empty: the service looks at a
 * limited number of events for each.
 */
export async function getPage(path, query, signal) {
  const { data: items, next_cursor: next } = await get(path, query, signal);
  return { items, next };
}

export const patch = (path, body) => send("PATCH", path, body);

/** DELETE. "Not found" is a refusal: the thing may be another coach's. */
export const remove = path => send("DELETE", path);

// The keys of requests whose outcome is unclear, by path and body. They outlive the form or dialog that sent them.
const unclear = new Map();

/** Forgets the requests whose outcome is unclear: another coach repeats none of them. */
export const forgetRequests = () => unclear.clear();

/**
 * One form or button that posts: however often it is sent, the same content has one effect. The content keeps its
 * `Idempotency-Key` after an unclear outcome, even if another form sends it, and after success in this form. It
 * gets a new key after a refusal, which the service would repeat. Create another `IdempotentPost` to do the same
 * thing a second time.
 */
export class IdempotentPost {
  #done = {};

  async post(path, body) {
    const content = JSON.stringify([path, body]);
    const key = this.#done.content === content ? this.#done.key : (unclear.get(content) ?? crypto.randomUUID());
    unclear.set(content, key);
    try {
      const answer = await send("POST", path, body, { key });
      unclear.delete(content);
      this.#done = { content, key };
      return answer;
    } catch (error) {
      if (error.kind === "refused" && error.code !== "idempotency_in_progress") unclear.delete(content);
      throw error;
    }
  }
}

/** Builds a path of ids: ids come from answers, and are escaped all the same. */
export const path = (strings, ...ids) => String.raw({ raw: strings }, ...ids.map(encodeURIComponent));

/** Sends a request for the present coach. It ends with the coach, and is repeated once with another token. */
async function send(method, path, body, { key, signal } = {}) {
  const ofCoach = coach.signal();
  const ended = signal ? AbortSignal.any([signal, ofCoach]) : ofCoach;
  const attempt = async token => {
    ended.throwIfAborted();
    const answer = await request(token, method, path, { body, key, signal: ended });
    ended.throwIfAborted();
    return answer;
  };
  const token = await coach.token();
  const answer = await attempt(token);
  return content(answer.status === 401 ? await attempt(await coach.token(token)) : answer);
}
