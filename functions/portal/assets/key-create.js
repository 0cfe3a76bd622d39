// The screen "Create a key", and the key shown once.

import { announce } from "./announce.js";
import { get } from "./api.js";
import { choiceWithParts, choices } from "./choices.js";
import { dayField } from "./date-field.js";
import { showSecret } from "./dialogs.js";
import { LIMITS, PERMISSIONS, SCOPES } from "./domain.js";
import { dropDraft, keepDraft } from "./drafts.js";
import { eventTypes } from "./event-types.js";
import { field, form } from "./forms.js";
import { eventAccess, eventFields } from "./key-events.js";
import { developerNote, entitlementWarning, expiry, presets, tomorrow } from "./key-words.js";
import { now } from "./service-clock.js";
import { link, linkButton } from "./ui.js";

export async function createKey(_, page) {
  const [workspace, types] = await Promise.all([get("/settings/workspace", {}, page.signal), eventTypes()]);
  const opened = new Date(now());
  const warnings = new Map(SCOPES.map(({ name }) => [name, entitlementWarning(workspace, name)]));
  const node = form(
    {
      submit: "Create the key",
      cancel: linkButton("#/keys", "Cancel"),
      send: async (values, once) => {
        const { name, scope, permissions, until, date } = values;
        const key = await once.post("/settings/keys", {
          name,
          scope,
          permissions,
          expires_at: expiry(until, date, opened) ?? undefined,
          events: eventAccess(values),
        });
        dropDraft();
        await showNewKey(key);
        page.go(`/keys/${encodeURIComponent(key.id)}`, "The key is created and works at once.");
      },
    },
    field({
      name: "name",
      label: "Name",
      hint: "So that you know it again: the system that uses it, such as “Website”.",
      required: true,
      maxlength: LIMITS.keyName,
      dir: "auto",
    }),
    choiceWithParts({
      name: "scope",
      legend: "What is it for?",
      onchange: scope => announce(warnings.get(scope)?.textContent),
      choices: SCOPES.map(({ name, title, hint }) => ({ value: name, label: title, hint })),
      parts: Object.fromEntries(SCOPES.map(({ name }) => [name, [warnings.get(name), permissionChoices(name)]])),
    }),
    eventFields(types, null),
    expiryFields(null),
  );
  return { title: "Create a key", parent: { href: "/keys", text: "Keys" }, content: keepDraft(node) };
}

function permissionChoices(scope) {
  return choices({
    name: "permissions",
    legend: "What may it do?",
    kind: "checkbox",
    required: true,
    hint: "Choose only what the other system needs. This cannot be changed later: you would create another key.",
    choices: PERMISSIONS.filter(permission => permission.scope === scope).map(({ name, title }) => ({
      value: name,
      label: title,
    })),
  });
}

/** The fields for the end of a key: `until` (a preset) and `date`. `present`: the last day of the key, or null. */
export function expiryFields(present) {
  const min = [tomorrow(), present ?? tomorrow()].sort()[0];
  return choiceWithParts({
    name: "until",
    legend: "When does it end?",
    chosen: [present ? "date" : "never"],
    hint: "After its end the key is refused, and whatever uses it stops working.",
    choices: presets(),
    parts: { date: dayField({ name: "date", label: "Last day", required: true, min, value: present ?? "" }) },
  });
}

/** Shows a new key once, with the note for the developer. */
export function showNewKey(key) {
  return showSecret({
    title: "Your new key",
    what: "The key",
    value: key.key,
    note: developerNote(key),
    lost: [
      "This key was created, but more than ten minutes ago: it can be shown no more. Revoke it and create another. ",
      link("#/keys", "All keys"),
    ],
  });
}
