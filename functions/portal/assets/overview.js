// The screen "Overview": problems first, then what there is.

import { get } from "./api.js";
import { dayBars } from "./bars.js";
import { h, userText } from "./dom.js";
import { count, time } from "./format.js";
import { readKeys } from "./key-list.js";
import { problemsOf } from "./problems.js";
import { now } from "./service-clock.js";
import { button, link, notice, section } from "./ui.js";
import { readWebhooks } from "./webhook-list.js";
import { waitingCount } from "./webhook-status.js";
import { byUrgency, hasTrouble, readTrouble } from "./webhook-trouble.js";

// Webhooks whose trouble is read, however many have some: the page costs the same when much is wrong.
const READ_TROUBLES = 2;

export async function overview(_, { signal, refresh }) {
  const [workspace, { items: keys }, unsorted, { data: hours }] = await Promise.all([
    get("/settings/workspace", {}, signal),
    readKeys(null, signal),
    readWebhooks(signal),
    get("/settings/deliveries/activity", { hours: 24 }, signal),
  ]);
  const endpoints = byUrgency(unsorted);
  const read = async endpoint => [endpoint.id, await readTrouble(endpoint, signal)];
  const troubles = new Map(await Promise.all(endpoints.filter(hasTrouble).slice(0, READ_TROUBLES).map(read)));
  const problems = problemsOf(workspace, endpoints, keys, troubles);
  const hasIntegrations = keys.length > 0 || endpoints.length > 0;
  return {
    title: "Overview",
    heading: ["Private integrations of ", userText(workspace.name)],
    content: [
      problems.length ? h("section", { "aria-label": "Problems" }, problems) : hasIntegrations && allWell(),
      hasIntegrations ? figures(workspace, endpoints) : firstSteps(workspace),
      endpoints.length > 0 && section("The last 24 hours", dayBars(hours)),
      h("p", { class: "hint" }, "As of ", time(new Date(now()).toISOString()), "."),
      h(
        "p",
        { class: "buttons" },
        button("Look again", () => refresh(), { id: "again" }),
        h("a", { class: "button", href: "#/activity" }, "What was changed"),
      ),
    ],
  };
}

const allWell = () =>
  notice("good", "Everything works", h("p", {}, "No key ends soon, and no webhook fails."));

function figures({ keys, endpoints: limit }, endpoints) {
  const sum = name => endpoints.reduce((total, { last_24h }) => total + last_24h[name], 0);
  const unseen = words => h("span", { class: "unseen" }, words);
  const figure = (label, value) => h("div", {}, h("dt", {}, label), h("dd", {}, value));
  return section(
    "At a glance",
    h(
      "dl",
      { class: "figures" },
      figure("Keys", link("#/keys", `${keys.live} of at most ${keys.max}`)),
      figure("Webhooks", link("#/webhooks", `${limit.count} of at most ${limit.max}`)),
      figure("Delivered", count(sum("delivered"), "event")),
      figure("Waiting", link("#/deliveries?status=pending", waitingCount(sum("pending")), unseen(" that wait"))),
      figure("Failed", link("#/deliveries?status=failed", count(sum("failed"), "event"), unseen(" that failed"))),
    ),
    h("p", { class: "hint" }, "Delivered and failed: in the last 24 hours. Test events count, and so do failed ones that were sent again."),
  );
}

function firstSteps(workspace) {
  const card = (title, words, href, verb) =>
    h(
      "li",
      { class: "card" },
      h("h3", {}, title),
      h("p", {}, words),
      h("p", {}, h("a", { class: "button", href }, verb)),
    );
  const nothingIncluded = !workspace.entitlements.partner_api && !workspace.entitlements.pro_crm;
  return section(
    "Connect another system",
    nothingIncluded &&
      notice(
        "warn",
        "Your plan does not include integrations yet",
        h("p", {}, "You can prepare everything here. Other systems are " + "refused until your plan includes it."),
      ),
    h(
      "ul",
      { class: "cards" },
      card(
        "Another system works with your data",
        "Your website or an automation platform adds clients, or reads them. It needs a key.",
        "#/keys/new",
        "Create a key",
      ),
      card(
        "Another system learns what happens here",
        "It is told when a client joins or a check-in comes in. It needs a webhook.",
        "#/webhooks/new",
        "Create a webhook",
      ),
    ),
  );
}
