// One delivery: its attempts, and what was sent.

import { get, path } from "./api.js";
import { eventTypes, titleOf } from "./event-types.js";
import { confirm } from "./dialogs.js";
import { follow } from "./delivery-follow.js";
import { code, h, userText } from "./dom.js";
import { ago, duration, host, time } from "./format.js";
import { advice, isAccepted, outcome } from "./outcome.js";
import { action, badge, button, copyButton, facts, link, notice, section } from "./ui.js";
import { verifyForm } from "./verify.js";
import { deliveryBadge } from "./webhook-status.js";

export async function deliveryScreen({ id, delivery: deliveryId }, page) {
  const base = path`/settings/webhooks/${id}`;
  const source = `${base}/deliveries/${encodeURIComponent(deliveryId)}`;
  const [delivery, endpoint, types] = await Promise.all([get(source, {}, page.signal), get(base, {}, page.signal), eventTypes()]);
  const title = titleOf(types, delivery.type);
  return {
    title,
    heading: [title, " ", deliveryBadge(delivery), delivery.test && [" ", badge("calm", "Test")]],
    parent: { href: path`/webhooks/${id}`, text: ["Webhook to ", host(endpoint.url)] },
    content: [about(delivery), sendAgainControl(delivery, endpoint, source, page), attempts(delivery), request(delivery)],
  };
}

const about = delivery =>
  facts([
    ["Created", time(delivery.created_at)],
    ["Client", delivery.client_id && code(delivery.client_id)],
    ["Event", code(delivery.type)],
    ["Id of the event (webhook-id)", code(delivery.webhook_id)],
    ["Next attempt", delivery.next_attempt_at && [time(delivery.next_attempt_at), " (", ago(delivery.next_attempt_at), ")"]],
  ]);

function sendAgainControl(delivery, endpoint, source, page) {
  if (delivery.body_erased)
    return notice("calm", "The client was erased", h("p", {}, "This event was erased with the client. It cannot be sent again."));
  if (endpoint.status !== "enabled")
    return h(
      "p",
      {},
      "To send it again, first switch the webhook on: ",
      link(path`#/webhooks/${endpoint.id}`, host(endpoint.url)),
      ".",
    );
  const send = async once => {
    await once.post(`${source}/retry`);
    const sent = await follow(source, delivery.attempts.at(-1), page.signal);
    if (sent) await page.refresh("It was sent again: see the attempts.");
  };
  if (delivery.status !== "delivered") return action("Send again", send, { kind: "main", id: "send-again" });
  return button(
    "Send again",
    () =>
      confirm({
        title: "Send it a second time?",
        verb: "Send again",
        kind: "main",
        words: [
          h(
            "p",
            {},
            "The other system has accepted this event already. It gets the event once more, with the same id, by which it can tell.",
          ),
        ],
        run: (_, once) => send(once),
      }),
    { id: "send-again" },
  );
}

function attempts({ attempts: made, status }) {
  if (!made.length) return section("Attempts", h("p", {}, status === "pending" ? "Nothing was sent yet." : "Nothing was sent."));
  return section(`Attempts (${made.length})`, h("ol", { class: "timeline" }, made.map(attempt)));
}

function attempt(made) {
  const good = isAccepted(made);
  const sent = made.status_code !== undefined || made.duration_ms > 0;
  return h(
    "li",
    {},
    h(
      "p",
      {},
      time(made.at),
      " ",
      badge(good ? "good" : "bad", good ? "Accepted" : sent ? "Failed" : "Not sent"),
      " ",
      good ? `The other system accepted the event (${made.status_code})` : capital(outcome(made)),
      sent && made.error !== "timed out" && `, after ${duration(made.duration_ms)}`,
      ".",
    ),
    !good && advice(made) && h("p", { class: "hint" }, advice(made)),
    made.response_excerpt &&
      h(
        "details",
        {},
        h("summary", {}, "What it answered"),
        h("pre", { tabindex: "0", "aria-label": "Answer" }, userText(made.response_excerpt)),
      ),
  );
}

function request({ request: sent, body_erased: erased }) {
  if (!sent) return section("What was sent", h("p", {}, "Nothing yet. It appears here after the first attempt."));
  const lines = Object.entries(sent.headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
  const headers = text("Headers of the latest attempt", lines);
  return section(
    "What was sent",
    h("p", { class: "hint" }, "For your developer. To ", code(sent.url_host), "."),
    headers,
    erased || sent.body === null
      ? h("p", {}, "The body was erased with the client.")
      : [
          text("Body as sent", sent.body),
          h(
            "details",
            {},
            h("summary", {}, "Check the signature of this message"),
            verifyForm({ headers: lines, body: sent.body }),
          ),
        ],
  );
}

function text(title, content) {
  const shown = h("pre", { dir: "ltr", tabindex: "0", "aria-label": title }, content);
  return h(
    "div",
    { class: "copyable" },
    h("h3", {}, title),
    shown,
    copyButton(title, () => content, shown),
  );
}

const capital = words => words.charAt(0).toUpperCase() + words.slice(1);
