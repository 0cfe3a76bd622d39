// The settings API: requests with the coach's session, refusals as `ApiError`, and requests that happen once.

import * as session from "./session.js";

/**
 * A request that did not succeed. `kind`: `offline` (no answer came), `session` (no session any more), `limit` (429;
 * `retryAfterS`), `unavailable` (500 and above), or `refused` (any other answer: `status`, `code`, `field`). After
 * `offline` and `unavailable` a write may or may not have happened: send it again through the same `IdempotentPost`.
 */
export class ApiError extends Error {
  constructor(kind, message, details = {}) {
    super(message);
    Object.assign(this, { name: "ApiError", kind }, details);
  }
}

/** GET. Values of `query` that are null, undefined or empty are left out. */
export function get(path, query = {}, signal = undefined) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return send("GET", search ? `${path}?${search}` : path, undefined, { signal });
}

export const patch = (path, body) => send("PATCH", path, body);

export const remove = path => send("DELETE", path);

/**
 * One form or button that posts: however often it is sent, the same content has one effect. It keeps its
 * `Idempotency-Key` after an unclear outcome and after success, and takes a new one for other content or after a
 * refusal (which the service would repeat). Create another `IdempotentPost` to do the same thing a second time.
 */
export class IdempotentPost {
  #content = null;
  #key = null;

  async post(path, body) {
    const content = JSON.stringify([path, body]);
    if (content !== this.#content) this.#renew(content);
    try {
      return await send("POST", path, body, { key: this.#key });
    } catch (error) {
      if (error.kind === "refused" && error.code !== "idempotency_in_progress") this.#renew(null);
      throw error;
    }
  }

  #renew(content) {
    this.#content = content;
    this.#key = crypto.randomUUID();
  }
}

/** Builds a path of ids: ids come from answers, and are escaped all the same. */
export const path = (strings, ...ids) => String.raw({ raw: strings }, ...ids.map(encodeURIComponent));

async function send(method, path, body, { key, signal } = {}) {
  const used = session.current();
  if (used === null && !(await session.renew(null))) throw ended();
  let answer = await attempt(method, path, body, key, signal);
  if (answer.status === 401) {
    if (!(await session.renew(used))) throw ended();
    answer = await attempt(method, path, body, key, signal);
    if (answer.status === 401) throw ended();
  }
  const value = await answer.json().catch(() => null);
  if (answer.ok && value !== null) return value;
  throw refusal(answer, value ?? {});
}

async function attempt(method, path, body, key, signal) {
  const headers = { authorization: `Bearer ${session.current()}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (key) headers["idempotency-key"] = key;
  try {
    const options = { method, headers, body: body && JSON.stringify(body), signal };
    return await fetch(path, { ...options, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("offline", "No answer came from the service.");
  }
}

const ended = () => new ApiError("session", "Your session has ended.");

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
