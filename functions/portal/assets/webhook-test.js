// Sends a test event and shows what the other system answered.

import { announce } from "./announce.js";
import { IdempotentPost, path } from "./api.js";
import { follow } from "./delivery-follow.js";
import { fill, h } from "./dom.js";
import { field, form } from "./forms.js";
import { advice, isAccepted, outcome } from "./outcome.js";
import { link, remark, showAndAnnounce } from "./ui.js";

/** A form that sends an example event to the webhook, and the outcome below it. `kind`: of its button. */
export function testPanel(endpoint, types, { signal }, kind = "main") {
  const base = path`/settings/webhooks/${endpoint.id}`;
  const resultArea = h("div", {});
  let once = new IdempotentPost();
  const chosen = endpoint.events[0] ?? types[0]?.type;
  return h(
    "div",
    { class: "flow" },
    h(
      "p",
      { class: "soft" },
      "A test event is an example about nobody. It is marked as a test, so that the other system can tell.",
    ),
    form(
      {
        submit: "Send a test event",
        kind,
        send: async ({ type }) => {
          showAndAnnounce(resultArea, "calm", "Sending…");
          try {
            const { delivery_id: id } = await once.post(`${base}/test`, { type });
            const delivery = await follow(path`/settings/webhooks/${endpoint.id}/deliveries/${id}`, null, signal);
            if (!delivery) return;
            // Only now: if the outcome could not be read, another press asks for it and sends no second event.
            once = new IdempotentPost();
            fill(resultArea, result(delivery, endpoint));
            announce(resultArea.textContent);
          } catch (error) {
            fill(resultArea);
            throw error;
          }
        },
      },
      field({
        name: "type",
        label: "Event",
        tag: "select",
        options: types.map(({ type, title }) => [type, title]),
        value: chosen,
      }),
    ),
    resultArea,
  );
}

function result(delivery, endpoint) {
  const details = link(path`#/webhooks/${endpoint.id}/deliveries/${delivery.id}`, "See this event and the answer");
  const attempt = delivery.attempts.at(-1);
  if (!attempt) return remark("warn", "It is still waiting. ", details);
  if (isAccepted(attempt))
    return remark("good", `It works: the other system accepted the test event (${attempt.status_code}). `, details);
  return remark("bad", `It did not work: ${outcome(attempt)}. `, advice(attempt) && `${advice(attempt)} `, details);
}
