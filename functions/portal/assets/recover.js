// Sends failed events again: first counts them, then asks, then sends.

import { IdempotentPost, get, path } from "./api.js";
import { choiceWithParts, choices } from "./choices.js";
import { timeField } from "./date-field.js";
import { fill, h } from "./dom.js";
import { LIMITS } from "./domain.js";
import { eventTypes } from "./event-types.js";
import { time } from "./format.js";
import { form } from "./forms.js";
import { none, question } from "./recover-count.js";
import { now } from "./service-clock.js";
import { link, notice, showAndAnnounce } from "./ui.js";
import { start } from "./webhook-actions.js";
import { called, readWebhook } from "./webhook-list.js";
import { recoverSince } from "./webhook-trouble.js";

const DAY_MS = 24 * 60 * 60 * 1000;

export async function recover({ id }, page) {
  const base = path`/settings/webhooks/${id}`;
  const [endpoint, types] = await Promise.all([readWebhook(id, page.signal), eventTypes()]);
  const back = { href: path`/webhooks/${id}`, text: ["Webhook to ", called(endpoint)] };
  const content = endpoint.status === "enabled" ? countForm(endpoint, types, base, page) : off(endpoint, page);
  return {
    title: `Send failed events to ${endpoint.label}`,
    heading: "Send failed events again",
    parent: back,
    content,
  };
}

const off = (endpoint, page) =>
  notice(
    "warn",
    "This webhook is not on",
    h("p", {}, "It can be sent nothing now. ", link(path`#/webhooks/${endpoint.id}`, "See why, and the way out"), "."),
    endpoint.status === "disabled" && h("p", {}, start(endpoint, page, "Start sending again")),
  );

function countForm(endpoint, types, base, page) {
  const resultArea = h("div", { class: "flow" });
  const opened = now();
  // The links of notices name the time. The webhook itself forgets it when it is started or gets another address.
  const linked = page.query.get("since");
  const since = Number.isNaN(Date.parse(linked)) ? recoverSince(endpoint) : linked;
  let choice = 0;
  const node = form(
    {
      submit: "Count the events",
      send: async values => {
        const wanted = body(values, opened);
        if (wanted.until && wanted.since >= wanted.until)
          return showAndAnnounce(fill(resultArea), "bad", "“Before” has to be later than “From”.");
        const counted = choice;
        const found = await new IdempotentPost().post(`${base}/recover`, { ...wanted, dry_run: true });
        const content =
          found.deliveries || found.more
            ? question({ endpoint, types, base, wanted, found, page })
            : none(await get(base, {}, page.signal));
        if (counted !== choice) return;
        fill(resultArea, content);
        const heading = resultArea.querySelector("h2");
        heading.tabIndex = -1;
        heading.focus();
      },
    },
    choiceWithParts({
      name: "since",
      legend: "Which failed events?",
      hint: "By the time when they were created. An event may fail more than a day later, after its last try.",
      chosen: [since ?? String(LIMITS.deliveriesKeptDays)],
      choices: periods(since),
      parts: { custom: dates() },
    }),
    h(
      "details",
      {},
      h("summary", {}, "Only some events"),
      choices({
        name: "types",
        legend: "Events",
        hint: "Choose none for all.",
        kind: "checkbox",
        choices: types.map(({ type, title }) => ({ value: type, label: title })),
      }),
    ),
  );
  // A count is of the choice at its time, even if its answer comes later.
  node.addEventListener("input", () => {
    choice += 1;
    fill(resultArea);
  });
  return [
    h(
      "p",
      { class: "lead" },
      "Events that failed or were not sent, because the other system was broken or this webhook was paused, can be sent again. First they are counted: nothing is sent yet.",
    ),
    node,
    resultArea,
  ];
}

const periods = since =>
  [
    since && { value: since, label: ["Everything since ", time(since)] },
    { value: "1", label: "Of the last 24 hours" },
    { value: "7", label: "Of the last 7 days" },
    { value: String(LIMITS.deliveriesKeptDays), label: `All of the ${LIMITS.deliveriesKeptDays} days that are kept` },
    { value: "custom", label: "Between two times" },
  ].filter(Boolean);

const dates = () => [
  timeField({ name: "from", label: "From", required: true }),
  timeField({ name: "until", label: "Before (optional)" }),
];

function body({ since, from, until, types }, opened) {
  const start =
    since === "custom" ? from : /^\d+$/.test(since) ? new Date(opened - since * DAY_MS).toISOString() : since;
  return { since: start, until: until ?? undefined, types: types.length ? types : undefined };
}
