// The catalog of events. It is the same for everybody while the page is open, so it is read once.

import { get } from "./api.js";

let reading = null;

/** The headings of the groups of events. */
export const GROUPS = { client: "Clients", contact: "Contacts", opportunity: "Opportunities", booking: "Bookings" };

/** Reads all event types: `[{ type, kind, group, title, description, schema, examples }]`. */
export function eventTypes() {
  reading ??= get("/settings/event-types")
    .then(({ data }) => data)
    .catch(error => {
      reading = null;
      throw error;
    });
  return reading;
}

/** Returns the title of an event. A name that the catalog does not know stands for itself. */
export const titleOf = (types, type) => types.find(known => known.type === type)?.title ?? type;

/** The event types that a webhook can be subscribed to. The others come from automations. */
export const emitted = types => types.filter(({ kind }) => kind === "emitted");

/** Choices of a form: the title of each event with its description. */
export const eventChoices = types =>
  emitted(types).map(({ type, group, title, description }) => ({
    value: type,
    label: title,
    hint: description,
    group: GROUPS[group],
  }));
