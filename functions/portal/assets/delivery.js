// One delivery: its attempts, the way to send it again, and what was sent.

import { get, path } from "./api.js";
import { eventTypes, titleOf } from "./event-types.js";
import { confirm } from "./dialogs.js";
import { attempts } from "./delivery-attempts.js";
import { follow } from "./delivery-follow.js";
import { forDevelopers, wire } from "./delivery-request.js";
import { h } from "./dom.js";
import { due, time } from "./format.js";
import { isAccepted, outcome } from "./outcome.js";
import { action, badge, link, notice, remark, showAndAnnounce } from "./ui.js";
import { called, readWebhook } from "./webhook-list.js";
import { deliveryBadge } from "./webhook-status.js";

export async function deliveryScreen({ id, delivery: deliveryId }, page) {
  const base = path`/settings/webhooks/${id}`;
  const source = `${base}/deliveries/${encodeURIComponent(deliveryId)}`;
  const [delivery, endpoint, types] = await Promise.all([
    get(source, {}, page.signal),
    readWebhook(id, page.signal).catch(noneIfDeleted),
    eventTypes(),
  ]);
  const title = titleOf(types, delivery.type);
  return {
    title,
    heading: [title, " ", deliveryBadge(delivery), delivery.test && [" ", badge("info", "Test")]],
    parent: endpoint
      ? { href: path`/webhooks/${id}`, text: ["Webhook to ", called(endpoint)] }
      : { href: "/deliveries", text: "Sent events" },
    actions: canBeSent(delivery, endpoint) && sendAgain(delivery, source, page),
    content: [
      about(delivery),
      !canBeSent(delivery, endpoint) && whyNot(delivery, endpoint),
      h("div", { class: "pair even" }, attempts(delivery), wire(delivery)),
      forDevelopers(delivery),
    ],
  };
}

/** The events of a deleted webhook can still be read. */
function noneIfDeleted(error) {
  if (error.code !== "not_found") throw error;
  return null;
}

const about = ({ created_at: created, next_attempt_at: next }) =>
  h("p", { class: "soft" }, "Created ", time(created), ".", next && [" Next try ", time(next), " (", due(next), ")."]);

const canBeSent = (delivery, endpoint) => !delivery.body_erased && endpoint?.status === "enabled";

function whyNot(delivery, endpoint) {
  if (delivery.body_erased)
    return notice(
      "calm",
      "The client was erased",
      h("p", {}, "This event was erased with the client. It cannot be sent again."),
    );
  if (!endpoint) return remark("calm", "It cannot be sent again: its webhook was deleted.");
  if (endpoint.status === "gone")
    return remark(
      "calm",
      "It cannot be sent again: the other system said that this address is gone for good. ",
      link(path`#/webhooks/new?template=${endpoint.id}`, "Create a webhook like this one"),
      " with the new address.",
    );
  return remark(
    "calm",
    "To send it again, first start the webhook: ",
    link(path`#/webhooks/${endpoint.id}`, called(endpoint)),
    ".",
  );
}

function sendAgain(delivery, source, page) {
  const isDelivered = delivery.status === "delivered";
  return action(
    "Send again",
    async (once, progress) => {
      // The service may have tried again since the screen was drawn.
      const known = isDelivered ? delivery : await get(source, {}, page.signal);
      const previous = known.attempts.at(-1);
      const retry = post => post.post(`${source}/retry`);
      if (isDelivered && !(await confirmAnother(retry))) return;
      if (!isDelivered) await retry(once);
      showAndAnnounce(progress, "calm", "Sending…");
      const sent = await follow(source, previous, page.signal);
      if (sent) await page.refresh(...confirmation(sent.attempts.at(-1), previous));
    },
    { kind: isDelivered ? undefined : "main", id: "send-again" },
  );
}

const confirmAnother = retry =>
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
    run: (_, once) => retry(once),
  });

/** Returns what the screen says after the event was sent again, and the kind of the notice. */
function confirmation(attempt, previous) {
  const isWaiting = !attempt || attempt.at === previous?.at;
  if (isWaiting)
    return ["It will be sent again in a moment. Come back in a minute to see whether it got through.", "warn"];
  if (isAccepted(attempt)) return ["It was sent again, and the other system accepted it.", "good"];
  return [`It was sent again, but it failed: ${outcome(attempt)}.`, "bad"];
}
