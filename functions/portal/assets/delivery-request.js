// What went over the wire for an event, for a developer.

import { codePanel } from "./code-panel.js";
import { code, h, userText } from "./dom.js";
import { json } from "./json.js";
import { capital, time } from "./format.js";
import { outcome, wasSent } from "./outcome.js";
import { facts, section } from "./ui.js";
import { verifyForm } from "./verify.js";

const name = text => h("span", { class: "p" }, text);

/** The latest request of a delivery, and the answer to it. */
export function wire({ request, status, attempts, body_erased: erased }) {
  if (!request)
    return section(
      "For your developer",
      h("p", {}, status === "pending" ? "Nothing was sent yet." : "This event was never sent."),
    );
  const { body } = request;
  const isErased = erased || body === null;
  const last = attempts.findLast(wasSent);
  return section(
    "For your developer",
    h("p", { class: "hint" }, "To ", code(request.url_host), "."),
    codePanel(
      "What went over the wire",
      [
        !isErased && { title: "What was sent", name: "Body as sent", text: body, content: json(body) },
        {
          title: "Its headers",
          name: "Headers of the last try",
          text: headerLines(request),
          content: Object.entries(request.headers).map(([key, value], at) => [at > 0 && "\n", name(key), ": ", value]),
        },
        last && { title: "The answer", name: "Answer to the last try", ...answer(last) },
      ].filter(Boolean),
    ),
    isErased && h("p", {}, "The body was erased with the client."),
  );
}

/** The answer to an attempt: the text to copy, and how it is shown. */
function answer({ at, response_excerpt: excerpt, ...attempt }) {
  const head = attempt.status_code ? `HTTP ${attempt.status_code}` : `${capital(outcome(attempt))}.`;
  const shown = [h("span", { class: "f" }, head), " ", h("span", { class: "c" }, time(at))];
  return { text: excerpt ?? head, content: excerpt ? [shown, "\n\n", userText(json(excerpt))] : shown };
}

/** The names and ids of a delivery, and the check of its signature: folded, because coaches do not need them. */
export const forDevelopers = ({ type, webhook_id: event, client_id: client, request, body_erased: erased }) => [
  h(
    "details",
    {},
    h("summary", {}, "Names and ids"),
    facts([
      ["Name of the event", code(type)],
      ["Id of the event (webhook-id)", code(event)],
      ["Id of the client", client && code(client)],
    ]),
  ),
  request?.body &&
    !erased &&
    h(
      "details",
      {},
      h("summary", {}, "Check the signature of this message"),
      verifyForm({ headers: headerLines(request), body: request.body }),
    ),
];

const headerLines = ({ headers }) =>
  Object.entries(headers)
    .map(([key, value]) => `${key}: ${value}`)
    .join("\n");
