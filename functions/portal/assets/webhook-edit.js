// Changes a webhook: its address, events and note.

import { patch, path } from "./api.js";
import { choices } from "./choices.js";
import { h } from "./dom.js";
import { LIMITS } from "./domain.js";
import { keepDraft } from "./drafts.js";
import { eventChoices, eventTypes } from "./event-types.js";
import { field, form } from "./forms.js";
import { linkButton } from "./ui.js";
import { called, readWebhook } from "./webhook-list.js";
import { MODES } from "./webhook-status.js";

export async function editWebhook({ id }, page) {
  const base = path`/settings/webhooks/${id}`;
  const [endpoint, types] = await Promise.all([readWebhook(id, page.signal), eventTypes()]);
  const back = path`/webhooks/${id}`;
  const content = form(
    {
      submit: "Save",
      cancel: linkButton(`#${back}`, "Cancel"),
      send: async values => {
        const change = changed(endpoint, values);
        if (Object.keys(change).length) await patch(base, change);
        page.go(back, Object.keys(change).length ? "The changes are saved." : "Nothing was changed.");
      },
    },
    addressField(endpoint.url, "What is waiting goes to the new address too."),
    eventsField(types, endpoint.events),
    descriptionField(endpoint.description),
    h(
      "p",
      { class: "hint" },
      `Data: ${MODES[endpoint.payload_mode][0].toLowerCase()}. This cannot be changed: create another webhook and delete this one.`,
    ),
  );
  return {
    title: `Edit the webhook to ${endpoint.label}`,
    heading: "Edit the webhook",
    parent: { href: back, text: ["Webhook to ", called(endpoint)] },
    content: keepDraft(content),
  };
}

function changed(endpoint, { url, events, description }) {
  const change = {};
  if (url !== endpoint.url) change.url = url;
  if (events.toSorted().join() !== endpoint.events.toSorted().join()) change.events = events;
  if ((description || null) !== endpoint.description) change.description = description || null;
  return change;
}

export const addressField = (url, more) =>
  field({
    name: "url",
    label: "Web address",
    hint: `The other system shows it to you. It begins with https://. ${more}`,
    type: "url",
    required: true,
    maxlength: LIMITS.endpointUrl,
    dir: "ltr",
    spellcheck: "false",
    value: url,
  });

export const eventsField = (types, chosen) =>
  choices({
    name: "events",
    legend: "Events",
    hint: "Choose none if only your automations should send to this address.",
    kind: "checkbox",
    choices: eventChoices(types),
    chosen,
  });

export const dataField = chosen =>
  choices({
    name: "payload_mode",
    legend: "Data included",
    kind: "radio",
    required: true,
    choices: Object.entries(MODES).map(([value, [label, hint]]) => ({ value, label, hint })),
    chosen: [chosen],
  });

export const descriptionField = description =>
  field({
    name: "description",
    label: "Note (optional)",
    hint: "What this webhook is for, so that you know it again.",
    maxlength: LIMITS.endpointDescription,
    dir: "auto",
    value: description ?? "",
  });
