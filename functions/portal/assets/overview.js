// The screen "Overview": problems first, then what there is.

import { get, getPage } from "./api.js";
import { h, userText } from "./dom.js";
import { ago, count } from "./format.js";
import { readKeys } from "./key-list.js";
import { isLive } from "./key-words.js";
import { problemsOf } from "./problems.js";
import { button, link, notice, section } from "./ui.js";

export async function overview(_, { signal, refresh }) {
  const [workspace, { items: keys }, { endpoints }, failed] = await Promise.all([
    get("/settings/workspace", {}, signal),
    readKeys(null, signal),
    get("/settings/webhooks", {}, signal),
    getPage("/settings/deliveries", { status: "failed", limit: 1 }, signal),
  ]);
  const live = keys.filter(isLive);
  const problems = problemsOf(workspace, endpoints, live);
  return {
    title: "Overview",
    heading: ["Private integrations of ", userText(workspace.name)],
    content: [
      problems.length ? h("section", { "aria-label": "Problems" }, problems) : hasIntegrations(live, endpoints) && allWell(),
      hasIntegrations(live, endpoints) ? figures(workspace, endpoints, failed.items[0]) : firstSteps(workspace),
      h(
        "p",
        { class: "buttons" },
        button("Look again", () => refresh(), { id: "again" }),
        h("a", { class: "button", href: "#/activity" }, "What was changed"),
      ),
    ],
  };
}

const hasIntegrations = (live, endpoints) => live.length > 0 || endpoints.length > 0;

const allWell = () =>
  notice("good", "Everything works", h("p", {}, "No key ends soon, and every webhook reaches its receiver."));

function figures({ keys, endpoints: limit }, endpoints, failed) {
  const sum = name => endpoints.reduce((total, { last_24h }) => total + last_24h[name], 0);
  const figure = (label, value) => h("div", {}, h("dt", {}, label), h("dd", {}, value));
  return section(
    "At a glance",
    h(
      "dl",
      { class: "figures" },
      figure("Keys", link("#/keys", `${keys.live} of at most ${keys.max}`)),
      figure("Webhooks", link("#/webhooks", `${limit.count} of at most ${limit.max}`)),
      figure("Arrived in 24 hours", count(sum("delivered"), "event")),
      figure("Still being sent", count(sum("pending"), "event")),
      figure("Not arrived", link("#/deliveries?status=failed", count(sum("failed"), "event"))),
    ),
    failed && h("p", { class: "hint" }, "The last event that did not arrive was created ", ago(failed.created_at), "."),
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
