// The screen "Overview": problems first, then what there is.

import { get } from "./api.js";
import { dayBars } from "./bars.js";
import { h, icon, userText } from "./dom.js";
import { LIMITS } from "./domain.js";
import { number, time } from "./format.js";
import { readLateUse } from "./key-late-use.js";
import { keyTable, readKeys } from "./key-list.js";
import { problemsOf } from "./problems.js";
import { now } from "./service-clock.js";
import { button, headed, link, linkButton, notice, section } from "./ui.js";
import { readWebhooks } from "./webhook-list.js";
import { webhookTable } from "./webhook-table.js";
import { byUrgency, hasTrouble, readTrouble } from "./webhook-trouble.js";

// Webhooks whose trouble is read, however many have some: the page costs the same when much is wrong.
const READ_TROUBLES = 2;
// Webhooks and keys of each list. The others are on their own screens.
const SHOWN = 5;

export async function overview(_, { signal, refresh }) {
  const [workspace, { items: keys }, unsorted, { data: hours }] = await Promise.all([
    get("/settings/workspace", {}, signal),
    readKeys(null, signal),
    readWebhooks(signal),
    get("/settings/deliveries/activity", { hours: 24 }, signal),
  ]);
  const endpoints = byUrgency(unsorted);
  const read = async endpoint => [endpoint.id, await readTrouble(endpoint, signal)];
  const [troubles, lateUses] = await Promise.all([
    Promise.all(endpoints.filter(hasTrouble).slice(0, READ_TROUBLES).map(read)),
    readLateUse(keys, signal),
  ]);
  const problems = problemsOf({ workspace, endpoints, keys, troubles: new Map(troubles), lateUses });
  const hasIntegrations = keys.length > 0 || endpoints.length > 0;
  return {
    title: "Overview",
    heading: ["Private integrations of ", userText(workspace.name)],
    content: [
      problems.length
        ? h("section", { class: "problems flow", "aria-label": "Problems" }, problems)
        : hasIntegrations && allWell(),
      hasIntegrations ? figures(workspace, endpoints) : firstSteps(workspace),
      endpoints.length > 0 && section("The last 24 hours", dayBars(hours)),
      hasIntegrations && lists(workspace, endpoints, keys),
      h(
        "div",
        { class: "head" },
        h("span", { class: "soft" }, "As of ", time(new Date(now()).toISOString()), "."),
        h(
          "div",
          { class: "acts" },
          button("Look again", () => refresh(), { id: "again" }),
          linkButton("#/activity", "What was changed"),
        ),
      ),
    ],
  };
}

const allWell = () => notice("good", "Everything works", h("p", {}, "No key ends soon, and no webhook fails."));

function figures({ keys, endpoints: limit }, endpoints) {
  const sum = name => endpoints.reduce((total, { last_24h }) => total + last_24h[name], 0);
  const figure = (label, href, value, ...unit) => {
    const content = [h("b", {}, number(value)), " ", unit];
    return h("div", {}, h("dt", {}, label), h("dd", {}, href ? link(href, content) : content));
  };
  const unseen = words => h("span", { class: "unseen" }, words);
  const events = value => (value === 1 ? "event" : "events");
  const [delivered, pending, failed] = ["delivered", "pending", "failed"].map(sum);
  // The service counts up to a limit.
  const orMore = pending >= LIMITS.countedPending && " or more";
  return headed(
    "At a glance",
    h(
      "span",
      { class: "soft" },
      "Delivered and failed: in the last 24 hours. Test events count, and so do failed ones that were sent again.",
    ),
    h(
      "dl",
      { class: "figures" },
      figure("Delivered", null, delivered, events(delivered)),
      figure("Waiting", "#/deliveries?status=pending", pending, events(pending), orMore, unseen(" that wait")),
      figure("Failed", "#/deliveries?status=failed", failed, events(failed), unseen(" that failed")),
      figure("Webhooks", "#/webhooks", limit.count, `of at most ${limit.max}`),
      figure("Keys", "#/keys", keys.live, `of at most ${keys.max}`),
    ),
  );
}

function lists({ keys: { live, max }, endpoints: limit }, endpoints, keys) {
  const all = (list, href, text) => list.length > SHOWN && h("p", {}, link(href, text));
  return [
    headed(
      "Webhooks",
      limit.count < limit.max && linkButton("#/webhooks/new", "Create a webhook"),
      endpoints.length
        ? webhookTable(endpoints.slice(0, SHOWN))
        : h("p", { class: "soft" }, "You have no webhook yet."),
      all(endpoints, "#/webhooks", "All webhooks"),
    ),
    headed(
      "Keys",
      live < max && linkButton("#/keys/new", "Create a key"),
      keys.length ? keyTable(keys.slice(0, SHOWN)) : h("p", { class: "soft" }, "You have no key yet."),
      all(keys, "#/keys", "All keys"),
    ),
  ];
}

function firstSteps(workspace) {
  const way = (sign, title, words, link) =>
    h("li", { class: "card" }, icon(sign), h("h3", {}, title), h("p", {}, words), link);
  const nothingIncluded = !workspace.entitlements.partner_api && !workspace.entitlements.pro_crm;
  return section(
    "Connect another system",
    nothingIncluded &&
      notice(
        "warn",
        "Your plan does not include integrations yet",
        h("p", {}, "You can prepare everything here. Other systems are refused until your plan includes it."),
      ),
    h(
      "ul",
      { class: "ways" },
      way(
        "key",
        "Another system works with your data",
        "Your website or an automation platform adds clients, or reads them. It needs a key.",
        linkButton("#/keys/new", "Create a key", "main"),
      ),
      way(
        "hook",
        "Another system learns what happens here",
        "It is told when a client joins or a check-in comes in. It needs a webhook.",
        linkButton("#/webhooks/new", "Create a webhook"),
      ),
    ),
  );
}
