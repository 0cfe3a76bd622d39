// The coach whose workspace the page shows. A session belongs to one coach: before anything is sent with a new token,
// the page reads whose it is. Another coach ends what is under way.

import { content, request, sessionEnded } from "./request.js";
import * as session from "./session.js";

const WORKSPACE = "/settings/workspace";

let coach = null;
// The token that is known to be the coach's.
let known = null;
let checking = null;
// Aborted when another coach takes over.
let work = new AbortController();
let listener = () => {};

/** Has `changed(coach, former)` called for each token: `former` is null at the first, or the coach before. */
export function onCoach(changed) {
  listener = changed;
}

/** Returns the coach, `{ coach_id, name }`, or null before the first answer. */
export const current = () => coach;

/** Returns the signal of all that is under way for the present coach. */
export const signal = () => work.signal;

/** Returns a token of the present coach that is not `refused`. Throws if another coach takes over. */
export async function token(refused = null) {
  const found = await session.other(refused);
  if (found === null) throw sessionEnded();
  if (found === known) return found;
  checking ??= check(found).finally(() => {
    checking = null;
  });
  return checking;
}

/** Reads whose token it is. */
export const ownerOf = async token => content(await request(token, "GET", WORKSPACE));

/** Goes on with a token and its coach, as `ownerOf` returns it. */
export function become(owner, token) {
  const former = coach;
  session.replace(token);
  coach = owner;
  known = token;
  if (former && former.coach_id !== owner.coach_id) {
    work.abort();
    work = new AbortController();
  }
  listener(owner, former);
}

/** Checks a token, or the one after it if the service refuses it. */
async function check(found) {
  const { signal } = work;
  let answer = await request(found, "GET", WORKSPACE);
  let token = found;
  if (answer.status === 401) {
    token = await session.other(found);
    if (token === null) throw sessionEnded();
    answer = await request(token, "GET", WORKSPACE);
  }
  const owner = content(answer);
  signal.throwIfAborted();
  become(owner, token);
  signal.throwIfAborted();
  return token;
}
