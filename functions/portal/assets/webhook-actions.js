// Pauses, starts and deletes a webhook, and shows its secret. Each question says what stops working.

import { getPage, patch, path, remove } from "./api.js";
import { LIMITS } from "./domain.js";
import { confirm, showSecret } from "./dialogs.js";
import { h } from "./dom.js";
import { ago, count } from "./format.js";
import { action, button, facts, link } from "./ui.js";
import { called } from "./webhook-list.js";
import { waitingCount, wholeAddress } from "./webhook-status.js";
import { recoverAddress } from "./webhook-trouble.js";

const base = endpoint => path`/settings/webhooks/${endpoint.id}`;

/** A button that starts a webhook. */
export const start = (endpoint, page, text) =>
  action(
    text,
    async () => {
      await patch(base(endpoint), { enabled: true });
      await page.refresh([
        "Sending is on. Events that failed meanwhile are not sent by themselves: ",
        link(recoverAddress(endpoint), "Send failed events again"),
        ".",
      ]);
    },
    { kind: "main" },
  );

/** "Pause", or nothing for a webhook that gets nothing: its notice has the way out. */
export const pauseOrStart = (endpoint, page) =>
  endpoint.status === "enabled" &&
  button("Pause", async () => {
    const used = await lastUse(endpoint);
    if (page.signal.aborted) return;
    const done = await confirm({
      title: "Pause this webhook?",
      verb: "Pause",
      words: [
        h("p", {}, called(endpoint), " gets no events until you start it again. ", used),
        endpoint.last_24h.pending > 0 &&
          h("p", {}, `What waits now will fail: ${waitingCount(endpoint.last_24h.pending)}.`),
        h("p", {}, `Events of that time are kept for ${LIMITS.deliveriesKeptDays} days. You can send them afterwards.`),
      ],
      run: () => patch(base(endpoint), { enabled: false }),
    });
    if (done) await page.refresh("The webhook is paused.");
  });

/** "Delete". */
export const askToDelete = (endpoint, page) =>
  button(
    "Delete",
    async () => {
      const used = await lastUse(endpoint);
      if (page.signal.aborted) return;
      const done = await confirm({
        title: "Delete this webhook?",
        verb: "Delete the webhook",
        words: [
          h(
            "p",
            {},
            called(endpoint),
            " gets no more events, and what is waiting is not sent. Automations that send to it send nothing. ",
            used,
          ),
          h("p", {}, `This cannot be undone: its secret is gone. What was sent can be read for ${LIMITS.deliveriesKeptDays} days.`),
        ],
        run: () => remove(base(endpoint)),
      });
      if (done) page.go("/webhooks", "The webhook is deleted.");
    },
    { kind: "danger" },
  );

/** Shows the secret of a new webhook or a replaced one, with a note for whoever runs the receiver. */
export function secretDialog(title, endpoint, ...words) {
  const note = [
    ...words,
    facts([["Signing secret of the webhook to", wholeAddress(endpoint.url)]]),
    h("p", {}, "Every request carries a signature made with it, by the rules of Standard Webhooks 1.0.0."),
    h(
      "p",
      {},
      "Keep it in the configuration of the receiver, for example as WEBHOOK_SECRET, and check the signature of each request before anything else. ",
      link("/docs/guides/verifying", "How to check it, with examples"),
    ),
  ];
  const lost = "It was made, but too long ago: the secret can be shown no more. Use “Replace the secret” to get another one.";
  return showSecret({ title, what: "The secret", value: endpoint.secret, note, lost });
}

/** Says when an event was delivered last, so that the coach knows what is in use. */
export async function lastUse(endpoint) {
  const page = await getPage(`${base(endpoint)}/deliveries`, { status: "delivered", limit: 1 }).catch(() => null);
  if (!page) return null;
  const [latest] = page.items;
  const at = latest?.attempts.at(-1)?.at ?? latest?.created_at;
  if (at) return ["The last event was delivered ", ago(at), "."];
  if (page.next) return `None of the newest ${count(LIMITS.lookedAt, "event")} was delivered.`;
  return `No event was delivered in the last ${LIMITS.deliveriesKeptDays} days.`;
}
