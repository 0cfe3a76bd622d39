// The names and the request of an event, for a developer: folded, because coaches do not need them.

import { copyButton } from "./copy.js";
import { code, h } from "./dom.js";
import { facts, section } from "./ui.js";
import { verifyForm } from "./verify.js";

/** The names and ids of a delivery, and its latest request. */
export function forDevelopers(delivery) {
  const { request, status } = delivery;
  return section(
    "For your developer",
    fold(
      "Names and ids",
      facts([
        ["Name of the event", code(delivery.type)],
        ["Id of the event (webhook-id)", code(delivery.webhook_id)],
        ["Id of the client", delivery.client_id && code(delivery.client_id)],
      ]),
    ),
    request ? sent(delivery) : h("p", {}, status === "pending" ? "Nothing was sent yet." : "This event was never sent."),
  );
}

function sent({ request, body_erased: erased }) {
  const lines = Object.entries(request.headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
  const headers = text("Headers of the last try", lines);
  const to = h("p", { class: "hint" }, "To ", code(request.url_host), ".");
  if (erased || request.body === null)
    return [fold("What was sent", to, headers), h("p", {}, "The body was erased with the client.")];
  return [
    fold("What was sent", to, headers, text("Body as sent", request.body)),
    fold("Check the signature of this message", verifyForm({ headers: lines, body: request.body })),
  ];
}

const fold = (title, ...content) => h("details", {}, h("summary", {}, title), content);

function text(title, content) {
  const shown = h("pre", { dir: "ltr", tabindex: "0", role: "group", "aria-label": title }, content);
  return h(
    "div",
    { class: "copyable" },
    h("h3", {}, title),
    shown,
    copyButton(title, () => content, shown),
  );
}
