// The catalog of events, with an example for each kind of webhook.

import { choices } from "./choices.js";
import { copyButton } from "./copy.js";
import { code, fill, h } from "./dom.js";
import { GROUPS, eventTypes } from "./event-types.js";
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
        {},
        "This can be sent to another system. Answers of check-ins, messages, photos, grades and lab results are never sent.",
      ),
      section(
        "Events that a webhook can get",
        h("p", {}, "You choose them when you create a webhook. They are sent when they happen."),
        of("emitted"),
      ),
      section(
        "Events that automations send",
        h(
          "p",
          {},
          "They come from rules that you build as automations. A Webhook step of the automation sends them to the webhook that it names.",
        ),
        of("computed"),
      ),
      h("p", {}, link("/docs/guides/events", "For your developer: all about events")),
    ],
  };
}

function event({ type, title, description, examples, schema }) {
  const shown = h("pre", { dir: "ltr", tabindex: "0", role: "group", "aria-label": `Example of ${title}` });
  const show = mode => fill(shown, JSON.stringify(examples[mode], null, 2));
  show("identifiers");
  const described = h("pre", { dir: "ltr", tabindex: "0", role: "group", "aria-label": `Schema of ${title}` }, JSON.stringify(schema, null, 2));
  const modes = Object.entries(MODES).map(([value, [label]]) => ({ value, label }));
  return h(
    "div",
    { class: "card" },
    h("h4", {}, title),
    h("p", {}, description),
    h(
      "details",
      {},
      h("summary", {}, `Example of “${title}”`),
      h("p", { class: "hint" }, "Name for developers: ", code(type)),
      choices({ name: "mode", legend: "Data included", kind: "radio", choices: modes, chosen: ["identifiers"], onchange: show }),
      h(
        "div",
        { class: "copyable" },
        shown,
        copyButton(`Example of ${title}`, () => shown.textContent, shown),
      ),
      h("details", {}, h("summary", {}, `For your developer: form of “${title}”, as JSON Schema`), described),
    ),
  );
}
