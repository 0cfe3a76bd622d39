// Checks a Standard Webhooks signature in the browser, and finds the first rule that a message breaks. Nothing leaves
// the page.

const HEADERS = ["webhook-id", "webhook-timestamp", "webhook-signature"];
const SECRET_PREFIX = "whsec_";
const TOLERANCE_S = 5 * 60;
// Headers as programs print them: `name: value`, `"name": "value"`, `HTTP_NAME => value` as CGI and PHP do,
// `Name:[value]` as Go does, and lists of one value as JavaScript and PHP do.
const LINE = /webhook[-_](id|timestamp|signature)["'\]]?[ \t]*(?::|=>?|,)[ \t]*(?:(?:array(?::1)?\s*)?[[(]\s*(?:\[?0\]?\s*=>\s*)?)?["']?([^"'\n\\\]]*)/gi;

/** Finds the three headers in pasted text. */
export function parseHeaders(text) {
  const found = {};
  for (const [, name, value] of text.matchAll(LINE))
    found[`webhook-${name.toLowerCase()}`] = value.replace(/[,;\s]+$/, "").trim();
  return found;
}

/**
 * Checks a message at `nowMs`. Returns the rules in order as `[{rule, state, text}]`; `state` is `passed`, `failed` or
 * `unknown` (an earlier rule failed, so this one could not be checked).
 */
export async function check({ headers, body, secret, nowMs }) {
  const found = parseHeaders(headers);
  const rules = [
    () => checkHeaders(found),
    () => checkSecret(secret),
    () => checkForm(found),
    () => checkSignature(found, body, secret),
    () => checkTime(found, nowMs),
  ];
  const names = ["The three headers", "The secret", "The form of the headers", "The signature", "The time"];
  const results = [];
  let stopped = false;
  for (const [index, judge] of rules.entries()) {
    const result = stopped ? { state: "unknown", text: "Not checked, because of the rule above." } : await judge();
    results.push({ rule: names[index], ...result });
    stopped ||= result.state === "failed";
  }
  return results;
}

const passed = text => ({ state: "passed", text });
const failed = text => ({ state: "failed", text });

function checkHeaders(found) {
  const missing = HEADERS.filter(name => !found[name]);
  if (!missing.length) return passed("All three are there.");
  return failed(
    `Missing: ${missing.join(", ")}. A program between the internet and your receiver may drop them, or they were not pasted.`,
  );
}

function checkSecret(secret) {
  const text = secret.trim();
  if (!text.startsWith(SECRET_PREFIX)) return failed("A signing secret begins with whsec_. An API key is something else.");
  if (!secretBytes(text)) return failed("After whsec_ this is not a whole secret. Copy it again, to the end.");
  return passed("It has the right form.");
}

function checkForm(found) {
  if (!/^\d{1,12}$/.test(found["webhook-timestamp"])) return failed("webhook-timestamp is not a number of seconds.");
  if (!signatures(found).length) return failed("webhook-signature holds no signature of the form v1,...");
  return passed("The timestamp is a number, and the signature has the right form.");
}

async function checkSignature(found, body, secret) {
  const fits = text => isSigned(found, text, secret);
  if (await fits(body)) return passed("It fits the headers, the body and the secret.");
  for (const [text, cause] of likelyBodies(body)) {
    if (await fits(text))
      return failed(
        `It fits another form of the body: ${cause}. Check the raw bytes of the request, before anything reads them as JSON.`,
      );
  }
  return failed(
    "It does not fit. Either this is the secret of another address or an older one, or the body, webhook-id or " +
      "webhook-timestamp differ from what was sent. Compare the body with “Body as sent” of this event.",
  );
}

function checkTime(found, nowMs) {
  const ageS = Math.floor(nowMs / 1000) - Number(found["webhook-timestamp"]);
  if (Math.abs(ageS) <= TOLERANCE_S) return passed("It was signed less than five minutes ago.");
  const minutes = Math.floor(Math.abs(ageS) / 60);
  if (ageS < 0) return failed(`It was signed ${minutes} minutes in the future: the clock of the computer that signed it is fast.`);
  return failed(
    `It was signed ${minutes} minutes ago, and receivers refuse what is older than five minutes. That is normal for a ` +
      "message that you paste later. If your receiver says so of a new message, its clock is wrong.",
  );
}

/** Bodies that the pasted one may have been before a program or a person changed it, each with the change. */
function likelyBodies(body) {
  const trimmed = body.trim();
  const candidates = [
    [trimmed, "blanks or line breaks were added around it"],
    [`${trimmed}\n`, "a line break is missing"],
  ];
  try {
    candidates.push([JSON.stringify(JSON.parse(trimmed)), "it was read as JSON and written again"]);
  } catch {
    // Not JSON: nothing can have written it again.
  }
  return candidates;
}

const signatures = found => found["webhook-signature"].split(/\s+/).filter(part => /^v1,[A-Za-z0-9+/]+=*$/.test(part));

async function isSigned(found, body, secret) {
  const usage = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", secretBytes(secret.trim()), usage, false, ["sign"]);
  const message = `${found["webhook-id"]}.${found["webhook-timestamp"]}.${body}`;
  const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(message));
  const expected = `v1,${btoa(String.fromCharCode(...new Uint8Array(mac)))}`;
  return signatures(found).includes(expected);
}

/** Returns the bytes of a secret, or null if it is not 24 to 64 bytes in base64. */
function secretBytes(secret) {
  try {
    const bytes = Uint8Array.from(atob(secret.slice(SECRET_PREFIX.length)), character => character.charCodeAt(0));
    return bytes.length >= 24 && bytes.length <= 64 ? bytes : null;
  } catch {
    return null;
  }
}
