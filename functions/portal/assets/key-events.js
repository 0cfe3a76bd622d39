// The events that a key may read: fields, words, and the screen that changes them.

import { patch, path } from "./api.js";
import { choiceWithParts, choices } from "./choices.js";
import { h, userText } from "./dom.js";
import { keepDraft } from "./drafts.js";
import { eventChoices, eventTypes, titleOf } from "./event-types.js";
import { form } from "./forms.js";
import { chips, linkButton } from "./ui.js";
import { readKey } from "./key-list.js";
import { dataField } from "./webhook-edit.js";
import { MODES } from "./webhook-status.js";

/** The fields for the events of a key: `reads` (`yes` or `no`), `events` and `payload_mode`. `present`: as of a key. */
export const eventFields = (types, present) =>
  choiceWithParts({
    name: "reads",
    legend: "May it read events?",
    chosen: [present ? "yes" : "no"],
    hint: "You can change this later.",
    choices: [
      { value: "no", label: "No", hint: "Most systems get events sent to them, by a webhook. That needs no key." },
      { value: "yes", label: "Yes", hint: "The other system itself asks for what has happened since it last asked." },
    ],
    parts: {
      yes: [
        choices({
          name: "events",
          legend: "Which events?",
          kind: "checkbox",
          required: true,
          choices: eventChoices(types),
          chosen: present?.types,
        }),
        dataField(present?.payload_mode),
      ],
    },
  });

/** Returns the `events` of a key from the values of its fields. */
export const eventAccess = ({ reads, events, payload_mode }) =>
  reads === "yes" ? { types: events, payload_mode } : null;

/** Facts about the events of a key: which it may read, and which data they include. */
export function eventFacts(types, access) {
  return [
    ["Events it may read", access ? chips(access.types.map(type => titleOf(types, type))) : "None"],
    ["Data of the events", access && MODES[access.payload_mode][0]],
  ];
}

export async function changeEvents({ id }, page) {
  const [key, types] = await Promise.all([readKey(id, page.signal), eventTypes()]);
  const back = path`/keys/${id}`;
  const content = form(
    {
      submit: "Save",
      cancel: linkButton(`#${back}`, "Cancel"),
      send: async values => {
        await patch(path`/settings/keys/${id}`, { events: eventAccess(values) });
        page.go(back, "The events of the key are changed.");
      },
    },
    h("p", {}, "What you save counts at once: a system that asks for an event which you took away is refused."),
    eventFields(types, key.events),
  );
  return {
    title: `Events of ${key.label}`,
    heading: "Change which events the key reads",
    parent: { href: back, text: ["Key ", userText(key.label)] },
    content: keepDraft(content),
  };
}
