// The screen "Create a key", and the key shown once.

import { announce } from "./announce.js";
import { get } from "./api.js";
import { choiceWithParts, choices, choose } from "./choices.js";
import { dayField } from "./date-field.js";
import { showSecret } from "./dialogs.js";
import { LIMITS, PERMISSIONS, SCOPES } from "./domain.js";
import { fill, h } from "./dom.js";
import { dropDraft, keepDraft } from "./drafts.js";
import { eventTypes } from "./event-types.js";
import { field, form } from "./forms.js";
import { ASSISTANT, assistantNote, kindField, START, whatItSees } from "./key-assistant.js";
import { eventAccess, eventFields } from "./key-events.js";
import { developerNote, entitlementWarning, expiry, presets, tomorrow } from "./key-words.js";
import { now } from "./service-clock.js";
import { link, linkButton } from "./ui.js";

export async function createKey(_, page) {
  const [workspace, types] = await Promise.all([get("/settings/workspace", {}, page.signal), eventTypes()]);
  const opened = new Date(now());
  const permissions = SCOPES.map(({ name }) => permissionChoices(name));
  const end = expiryFields(null);
  const warnings = SCOPES.map(({ name }) => entitlementWarning(workspace, name));
  const notes = warnings.map(warning => h("div", { class: "flow" }, warning));
  const readNotes = () => announce(notes.find(node => node.isConnected)?.innerText);
  const start = kind => {
    permissions.forEach(node => choose(node, START[kind].permissions));
    choose(end[0], [START[kind].until]);
    notes.forEach((node, at) => fill(node, warnings[at], kind === ASSISTANT && whatItSees(SCOPES[at])));
    readNotes();
  };
  const node = form(
    {
      submit: "Create the key",
      cancel: linkButton("#/keys", "Cancel"),
      send: async (values, once) => {
        const { name, kind, scope, permissions, until, date } = values;
        const key = await once.post("/settings/keys", {
          name,
          scope,
          permissions,
          expires_at: expiry(until, date, opened) ?? undefined,
          events: eventAccess(values),
        });
        dropDraft();
        await showNewKey(key, kind === ASSISTANT);
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
    kindField(start),
    choiceWithParts({
      name: "scope",
      legend: "What is it for?",
      onchange: readNotes,
      choices: SCOPES.map(({ name, title, hint }) => ({ value: name, label: title, hint })),
      parts: Object.fromEntries(SCOPES.map(({ name }, at) => [name, [notes[at], permissions[at]]])),
    }),
    eventFields(types, null),
    end,
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

/** Shows a new key once, with the note for the developer, or for a coach who connects an assistant. */
export function showNewKey(key, isForAssistant = false) {
  return showSecret({
    title: "Your new key",
    what: "The key",
    value: key.key,
    ...(isForAssistant ? assistantNote(key) : { note: developerNote(key) }),
    lost: [
      "This key was created, but more than ten minutes ago: it can be shown no more. Revoke it and create another. ",
      link("#/keys", "All keys"),
    ],
  });
}
