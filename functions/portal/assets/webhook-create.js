// Creates a webhook in steps: address, events, data, check. Then the secret is shown, and a test event can be sent.

import { IdempotentPost, get, path } from "./api.js";
import { announce } from "./announce.js";
import { fill, h, userText } from "./dom.js";
import { dropDraft, keepDraft } from "./drafts.js";
import { eventTypes, titleOf } from "./event-types.js";
import { form, showError, values } from "./forms.js";
import { list } from "./format.js";
import { button, chips, facts, link, linkButton, notice, remark } from "./ui.js";
import { secretDialog } from "./webhook-actions.js";
import { addressField, dataField, descriptionField, eventsField } from "./webhook-edit.js";
import { MODES, wholeAddress } from "./webhook-status.js";
import { testPanel } from "./webhook-test.js";

const PARENT = { href: "/webhooks", text: "Webhooks" };

export async function createWebhook(_, page) {
  const templateId = page.query.get("template");
  const [workspace, types, template] = await Promise.all([
    get("/settings/workspace", {}, page.signal),
    eventTypes(),
    templateId ? get(path`/settings/webhooks/${templateId}`, {}, page.signal) : {},
  ]);
  const { count: taken, max } = workspace.endpoints;
  const content = taken >= max ? full(max) : steps(types, template, page);
  return { title: "Create a webhook", parent: PARENT, content };
}

const full = max =>
  notice(
    "warn",
    "You have as many webhooks as you can have",
    h(
      "p",
      {},
      `The limit is ${max}. Delete a webhook that you do not use, then come back. `,
      link("#/webhooks", "All webhooks"),
    ),
  );

function steps(types, template, page) {
  const stepArea = keepDraft(h("div", { class: "flow" }));
  const fields = fieldsOf(types, template);
  const draft = () => Object.assign({}, ...fields.map(({ nodes }) => values(h("div", {}, nodes))));
  const once = new IdempotentPost();
  const show = (at, error) => {
    const heading = h(
      "h2",
      { tabindex: "-1" },
      `Step ${at + 1} of ${fields.length + 1}: ${fields[at]?.title ?? "Check and create"}`,
    );
    const back = at > 0 && button("Back", () => show(at - 1));
    const step =
      at < fields.length
        ? form({ submit: "Next", cancel: back, send: () => show(at + 1) }, fields[at].nodes)
        : form({ submit: "Create the webhook", cancel: back, send: () => create(draft()) }, summary(draft(), types));
    fill(stepArea, heading, step);
    announce(heading.textContent);
    heading.focus();
    if (error) showError(step, step.querySelector(".outcome"), error);
  };
  const create = async body => {
    let endpoint;
    try {
      endpoint = await once.post("/settings/webhooks", { ...body, description: body.description || undefined });
    } catch (error) {
      const at = fields.findIndex(
        ({ names }) => error.kind === "refused" && names.includes(error.field?.split(/[.[]/)[0]),
      );
      if (at < 0) throw error;
      return show(at, error);
    }
    dropDraft();
    await secretDialog("The secret of your webhook", endpoint);
    // The test panel stays on the screen, and must not keep the secret.
    const { secret: _, ...created } = endpoint;
    tryIt(stepArea, created, types, page);
  };
  show(0);
  return stepArea;
}

function fieldsOf(types, template) {
  return [
    {
      title: "Where to",
      names: ["url", "description"],
      nodes: [addressField("", ""), descriptionField(template.description)],
    },
    { title: "Which events", names: ["events"], nodes: [eventsField(types, template.events ?? []), computed(types)] },
    {
      title: "Which data",
      names: ["payload_mode"],
      nodes: [
        dataField(template.payload_mode),
        remark(
          "warn",
          "This cannot be changed later: you would create another webhook and delete this one. " +
            "In neither case do answers of check-ins, messages, photos, grades or lab results leave this service.",
        ),
      ],
    },
  ];
}

const computed = types =>
  h(
    "p",
    { class: "hint" },
    "Not in this list: ",
    list(types.filter(({ kind }) => kind === "computed").map(({ title }) => `“${title}”`)),
    ". Your automations send those, with a Webhook step.",
  );

const summary = ({ url, events, payload_mode: mode, description }, types) =>
  facts([
    ["Web address", wholeAddress(url)],
    ["Note", description ? userText(description) : null],
    ["Events", events.length ? chips(events.map(type => titleOf(types, type))) : "only what your automations send"],
    ["Data", `${MODES[mode][0]} (cannot be changed later)`],
  ]);

function tryIt(stepArea, endpoint, types, page) {
  const heading = h("h2", { tabindex: "-1" }, "Try it");
  const created = h(
    "div",
    { class: "flow" },
    remark("good", "The webhook is created and on."),
    heading,
    h("p", {}, "Does the other system know the secret already? Then see whether an event arrives."),
    h("div", { class: "card" }, testPanel(endpoint, types, page, null)),
    h("p", {}, linkButton(path`#/webhooks/${endpoint.id}`, "Done", "main")),
  );
  stepArea.replaceWith(created);
  heading.focus();
}
