// The settings API: requests with the coach's session, refusals as `ApiError`, and requests that happen once.

import * as session from "./session.js";

const TIMEOUT_MS = 30_000;

/**
 * A request that did not succeed. `kind`: `offline` (no answer came in time), `session` (no session any more), `limit`
 * (429; `retryAfterS`), `unavailable` (500 and above), or `refused` (any other answer: `status`, `code`, `field`).
 * After `offline` and `unavailable` a write may or may not have happened.
 */
export class ApiError extends Error {
  constructor(kind, message, details = {}) {
    super(message);
    Object.assign(this, { name: "ApiError", kind }, details);
  }
}

/** Returns true if the same request may succeed a moment later. */
export const isTemporary = error => ["offline", "limit", "unavailable"].includes(error.kind);

/** GET. Values of `query` that are null, undefined or empty are left out. */
export function get(path, query = {}, signal = undefined) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return send("GET", search ? `${path}?${search}` : path, undefined, { signal });
}

/**
 * GET of a page of a list: `{ items, next }`. The service may answer a filter with an empty page and a cursor, so this
 * reads on until a page has items or is the last one.
 */
export async function getPage(path, query, signal) {
  const { data: items, next_cursor: next } = await get(path, query, signal);
  return items.length || !next ? { items, next } : getPage(path, { ...query, cursor: next }, signal);
}

export const patch = (path, body) => send("PATCH", path, body);

/** DELETE. "Not found" counts as done, because the answer to an earlier request may have got lost. */
export const remove = path =>
  send("DELETE", path).catch(error => {
    if (error.code !== "not_found") throw error;
  });

// The keys of requests whose outcome is unclear, by path and body. They outlive the form or dialog that sent them.
const unclear = new Map();

/**
 * One form or button that posts: however often it is sent, the same content has one effect. The content keeps its
 * `Idempotency-Key` after an unclear outcome, even if another form sends it, and after success in this form. It gets a
 * new key after a refusal, which the service would repeat. Create another `IdempotentPost` to do the same thing a
 * second time.
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

async function send(method, path, body, options = {}) {
  if (session.current() === null && !(await session.renew(null))) throw sessionEnded();
  const used = session.current();
  let answer = await attempt(method, path, body, options);
  if (answer.status === 401) {
    if (!(await session.renew(used))) throw sessionEnded();
    answer = await attempt(method, path, body, options);
    if (answer.status === 401) throw sessionEnded();
  }
  if (answer.ok && answer.value !== null) return answer.value;
  throw refusal(answer, answer.value ?? {});
}

/** Sends a request once. Returns the status and headers of the answer, and its JSON as `value`, or null. */
async function attempt(method, path, body, { key, signal }) {
  const headers = { authorization: `Bearer ${session.current()}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (key) headers["idempotency-key"] = key;
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const ended = signal ? AbortSignal.any([signal, timeout]) : timeout;
  const options = { method, headers, body: body && JSON.stringify(body), signal: ended };
  try {
    const answer = await fetch(path, { ...options, cache: "no-store", credentials: "omit", redirect: "error" });
    const { ok, status, headers: answered } = answer;
    return { ok, status, headers: answered, value: parsed(await answer.text()) };
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("offline", "No answer came from the service.");
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const sessionEnded = () => new ApiError("session", "Your session has ended.");

function refusal(answer, value) {
  const details = {
    status: answer.status,
    code: value.code ?? null,
    field: value.field ?? null,
    reference: value.event_id ?? value.request_id ?? answer.headers.get("x-request-id"),
    retryAfterS: Number(answer.headers.get("retry-after")) || null,
  };
  const kind = answer.status === 429 ? "limit" : answer.status >= 500 || answer.ok ? "unavailable" : "refused";
  return new ApiError(kind, value.error ?? value.message ?? "", details);
}
