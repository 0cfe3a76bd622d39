// One request of the settings API with a token. Refusals are `ApiError`.

import { setClock } from "./service-clock.js";

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

export const sessionEnded = () => new ApiError("session", "Your session has ended.");

/** Sends a request once. Returns the status and headers of the answer, and its JSON as `value`, or null. */
export async function request(token, method, path, { body, key, signal } = {}) {
  const headers = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (key) headers["idempotency-key"] = key;
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const ended = signal ? AbortSignal.any([signal, timeout]) : timeout;
  const options = { method, headers, body: body && JSON.stringify(body), signal: ended };
  try {
    const answer = await fetch(path, { ...options, cache: "no-store", credentials: "omit", redirect: "error" });
    const { ok, status, headers: answered } = answer;
    setClock(answered.get("date"));
    return { ok, status, headers: answered, value: parsed(await answer.text()) };
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("offline", "No answer came from the service.");
  }
}

/** Returns the content of an answer, or throws the refusal that it is. */
export function content(answer) {
  if (answer.ok && answer.value !== null) return answer.value;
  throw answer.status === 401 ? sessionEnded() : refusal(answer, answer.value ?? {});
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

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
