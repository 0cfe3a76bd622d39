// Words about requests of other systems, for the screens that show them.

import { path } from "./api.js";
import { CODES } from "./domain.js";
import { code, h, userText } from "./dom.js";
import { time } from "./format.js";
import { badge, link } from "./ui.js";

const ROUTES = {
  "GET /v1/ping": "Check the connection",
  "GET /v1/key": "See what the key may do",
  "GET /v1/requests": "See its own requests",
  "GET /v1/clients": "Find clients",
  "POST /v1/clients": "Add a client",
  "GET /v1/clients/{clientId}": "Read a client",
  "PATCH /v1/clients/{clientId}": "Change a client",
  "POST /v1/clients/{clientId}/login-link": "Sign a client in",
  "GET /v1/clients/{clientId}/compliance": "Read a client’s compliance",
  "GET /v1/clients/{clientId}/check-ins": "Read a client’s check-ins",
  "GET /v1/clients/{clientId}/daily-logs": "Read a client’s daily logs",
  "GET /v1/crm/contacts": "Find contacts",
  "POST /v1/crm/contacts": "Add a contact",
  "GET /v1/crm/contacts/{id}": "Read a contact",
  "PATCH /v1/crm/contacts/{id}": "Change a contact",
  "GET /v1/crm/opportunities": "Find opportunities",
  "POST /v1/crm/opportunities": "Add an opportunity",
  "GET /v1/crm/opportunities/{id}": "Read an opportunity",
  "PATCH /v1/crm/opportunities/{id}": "Change an opportunity",
  "GET /v1/crm/calendars": "See the calendars",
  "GET /v1/crm/bookings": "Find appointments",
  "POST /v1/crm/bookings": "Book an appointment",
  "POST /v1/crm/bookings/availability": "Find free times",
  "GET /v1/crm/bookings/{id}": "Read an appointment",
  "PATCH /v1/crm/bookings/{id}": "Move an appointment",
  "DELETE /v1/crm/bookings/{id}": "Cancel an appointment",
  "GET /v1/crm/workflows": "See the workflows",
  "GET /v1/events": "Read events",
  "GET /v1/events/samples": "Read examples of events",
};

/** The ends of a request by the class of its status, as choices of a filter, each with the kind of its badge. */
export const OUTCOMES = [
  ["2xx", "Done", "good"],
  ["4xx", "Refused", "warn"],
  ["5xx", "Failed", "bad"],
];

/** Says what a request asked for: "Book an appointment". */
export const asked = ({ method, route }) => ROUTES[`${method} ${route}`] ?? `${method} ${route}`;

/** How a request ended, as badges. */
export function outcomeBadges({ status, replayed, tool }) {
  const [, word, kind] = OUTCOMES.find(([name]) => name[0] === `${status}`[0]) ?? [0, status, "calm"];
  return [badge(kind, word), replayed && [" ", badge("info", "Repeat")], tool && [" ", badge("info", "Assistant")]];
}

/** Says that a request was a repeat, and why it was refused or failed, with a link to what helps. */
export const explanation = ({ code: name, replayed }) => [
  replayed && "It was sent before, and got the stored answer again: nothing was done twice. ",
  name && [meaning(name), " ", link("/docs/guides/errors#codes", "What to do")],
];

/** Shows the name of a key as a link. `known`: keys by id. */
export const keyLink = (known, id) =>
  link(path`#/keys/${id}`, known.has(id) ? userText(known.get(id).label) : code(id));

/** The sentence of the documentation, which marks code with backticks. */
const meaning = name => (CODES[name] ?? `\`${name}\``).split("`").map((part, at) => (at % 2 ? code(part) : part));
