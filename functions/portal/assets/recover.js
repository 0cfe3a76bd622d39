// Sends missed events again: first counts them, then asks, then sends.

import { IdempotentPost, get, path } from "./api.js";
import { LIMITS } from "./domain.js";
import { instant } from "./delivery-filters.js";
import { fill, h } from "./dom.js";
import { eventTypes, titleOf } from "./event-types.js";
import { choices, field, form } from "./forms.js";
import { count, host, list, time } from "./format.js";
import { go } from "./router.js";
import { link, notice, showAndAnnounce } from "./ui.js";
import { hostName } from "./webhook-status.js";

const DAY_MS = 24 * 60 * 60 * 1000;

export async function recover({ id }, { signal }) {
  const base = path`/settings/webhooks/${id}`;
  const [endpoint, types] = await Promise.all([get(base, {}, signal), eventTypes()]);
  const back = { href: path`/webhooks/${id}`, text: ["Webhook to ", host(endpoint.url)] };
  const content = endpoint.status === "enabled" ? countForm(endpoint, types, base) : off(endpoint);
  return { title: `Send missed events to ${hostName(endpoint.url)}`, heading: "Send missed events again", parent: back, content };
}

const off = endpoint =>
  notice(
    "warn",
    "This webhook is not on",
    h("p", {}, "It can be sent nothing now. ", link(path`#/webhooks/${endpoint.id}`, "See why, and the way out"), "."),
  );

function countForm(endpoint, types, base) {
  const resultArea = h("div", {});
  const custom = h("div", {});
  const opened = Date.now();
  const choose = since => fill(custom, since === "custom" && dates());
  const node = form(
    {
      submit: "Count the events",
      send: async values => {
        const wanted = body(values, opened);
        if (wanted.until && wanted.since >= wanted.until)
          return showAndAnnounce(fill(resultArea), "bad", "“Before” has to be later than “From”.");
        const { deliveries } = await new IdempotentPost().post(`${base}/recover`, { ...wanted, dry_run: true });
        fill(resultArea, deliveries ? question(endpoint, types, base, wanted, deliveries) : none());
        resultArea.querySelector("h2").focus();
      },
    },
    choices({
      name: "since",
      legend: "Which failed events?",
      kind: "radio",
      required: true,
      chosen: ["1"],
      onchange: choose,
      choices: periods(endpoint),
    }),
    custom,
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
  // The count is of the choice that was counted.
  node.addEventListener("change", () => fill(resultArea));
  return [
    h(
      "p",
      {},
      "Events that failed or were not sent, because the other system was broken or this webhook was paused, can be sent again. First they are counted: nothing is sent yet.",
    ),
    node,
    resultArea,
  ];
}

const periods = endpoint =>
  [
    endpoint.failing_since && {
      value: endpoint.failing_since,
      label: ["Since the failures began: ", time(endpoint.failing_since)],
    },
    { value: "1", label: "Of the last 24 hours" },
    { value: "7", label: "Of the last 7 days" },
    { value: String(LIMITS.deliveriesKeptDays), label: `All of the ${LIMITS.deliveriesKeptDays} days that are kept` },
    { value: "custom", label: "Between two times" },
  ].filter(Boolean);

const dates = () => [when({ name: "from", label: "From", required: true }), when({ name: "until", label: "Before (optional)" })];

function when(props) {
  const node = field({ ...props, type: "datetime-local", read: () => instant(node.querySelector("input").value) });
  return node;
}

function body({ since, from, until, types }, opened) {
  const start = since === "custom" ? from : /^\d+$/.test(since) ? new Date(opened - since * DAY_MS).toISOString() : since;
  return { since: start, until: until ?? undefined, types: types.length ? types : undefined };
}

const none = () =>
  notice(
    "calm",
    "There is nothing to send again",
    h(
      "p",
      {},
      "No event of that time has failed. Test events, events of erased clients, and those that were sent again in the last hour are left out.",
    ),
  );

function question(endpoint, types, base, wanted, deliveries) {
  const events = count(deliveries, "event");
  const node = h(
    "section",
    { class: "notice warn" },
    h("h2", { tabindex: "-1" }, `Send ${events} again?`),
    form(
      {
        submit: `Send ${events} again`,
        send: async (_, once) => {
          const { deliveries: sent } = await once.post(`${base}/recover`, wanted);
          const left =
            sent < deliveries ? " There were too many to send at once: count again in an hour, or choose a shorter time." : "";
          go(path`/webhooks/${endpoint.id}`, `${count(sent, "event is", "events are")} on the way to the other system.${left}`);
        },
      },
      h(
        "p",
        {},
        "They go to ",
        host(endpoint.url),
        ", with the ids that they had: a system that got one of them already can tell.",
      ),
      wanted.types && h("p", {}, `Only: ${list(wanted.types.map(type => titleOf(types, type)))}.`),
    ),
  );
  return node;
}
