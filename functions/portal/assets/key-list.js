// Reads keys, and shows them as a table. Each has a `label`: its name, and how it looks if another key of the page has
// the same name. The settings API has no route for one key.

import { get, path } from "./api.js";
import { code, h, userText } from "./dom.js";
import { ago } from "./format.js";
import { ending, scopeTitle, statusBadge } from "./key-words.js";
import { labelled } from "./labels.js";
import { ApiError } from "./request.js";
import { table } from "./table.js";
import { link } from "./ui.js";

const PAGE = 100;
const MOST_PAGES = 20;
const FORMS = [({ name }) => name, ({ name, display }) => `${name} (${display})`, ({ name, id }) => `${name} (${id})`];

/** The columns of a table of keys. */
export const KEY_COLUMNS = [["Key"], ["Status", "sign"], ["Opens"], ["Last used"], ["How long it works", "wide"]];

/** The cells of a key in such a table. */
export const keyCells = key => [
  link(path`#/keys/${key.id}`, userText(key.label)),
  statusBadge(key),
  [`${scopeTitle(key.scope)} · `, code(key.display), key.events && " · reads events"],
  key.last_used_at ? ago(key.last_used_at) : "never",
  ending(key),
];

/** A table of some keys. */
export const keyTable = keys =>
  h("div", { class: "card" }, table({ "aria-label": "Keys", columns: KEY_COLUMNS, rows: keys.map(keyCells) }));

/** Reads a page of keys: `{ items, next }`, live keys first. */
export async function readKeys(cursor, signal) {
  const page = await get("/settings/keys", { cursor, limit: PAGE }, signal);
  return { items: labelled(page.keys, FORMS), next: page.next_cursor };
}

/** Reads the keys of the first page by id, which are all live keys and some more. */
export const knownKeys = async signal => new Map((await readKeys(null, signal)).items.map(key => [key.id, key]));

/** Reads a key by its id. */
export async function readKey(id, signal) {
  const key = await findKey(id, signal);
  if (!key) throw new ApiError("refused", "", { status: 404, code: "not_found" });
  return key;
}

/** Finds a key by its id, or returns null. Live keys are all on the first page. */
export async function findKey(id, signal) {
  let cursor;
  for (let read = 0; read < MOST_PAGES; read += 1) {
    const { items, next } = await readKeys(cursor, signal);
    const found = items.find(key => key.id === id);
    if (found || !next) return found ?? null;
    cursor = next;
  }
  return null;
}
