// The catalog of events, with an example for each kind of webhook.

import { codePanel } from "./code-panel.js";
import { code, h } from "./dom.js";
import { GROUPS, eventTypes } from "./event-types.js";
import { json } from "./json.js";
import { link, section } from "./ui.js";
import { MODES } from "./webhook-status.js";

export async function events() {
  const types = await eventTypes();
  const of = kind =>
    Object.entries(GROUPS).map(([group, title]) => {
      const members = types.filter(type => type.kind === kind && type.group === group);
      return members.length > 0 && [h("h3", {}, title), h("div", { class: "cards" }, members.map(event))];
    });
  return {
    title: "Events",
    content: [
      h(
        "p",
        { class: "lead" },
        "This can be sent to another system. Answers of check-ins, messages, photos, grades and lab results are never sent.",
      ),
      section(
        "Events that a webhook can get",
        h("p", { class: "soft" }, "You choose them when you create a webhook. They are sent when they happen."),
        of("emitted"),
      ),
      section(
        "Events that automations send",
        h(
          "p",
          { class: "soft" },
          "They come from rules that you build as automations. A Webhook step of the automation sends them to the webhook that it names.",
        ),
        of("computed"),
      ),
      h("p", {}, link("/docs/guides/events", "For your developer: all about events")),
    ],
  };
}

function event({ type, title, description, examples, schema }) {
  const tab = (name, title, value) => {
    const text = JSON.stringify(value, null, 2);
    return { title, name, text, content: json(text) };
  };
  return h(
    "div",
    { class: "card" },
    h("h4", {}, title),
    h("p", { class: "soft" }, description),
    h(
      "details",
      {},
      h("summary", {}, `Example of “${title}”`),
      h("p", { class: "hint" }, "Name for developers: ", code(type)),
      codePanel(`Example of ${title}`, [
        ...Object.entries(MODES).map(([mode, [label]]) => tab(`Example of ${title}`, label, examples[mode])),
        tab(`Schema of ${title}`, "JSON Schema", schema),
      ]),
    ),
  );
}
