// Helps to find out why a receiver refuses a message: checks a signature in the browser. Nothing that was pasted is
// sent anywhere.

import { announce } from "./announce.js";
import { get } from "./api.js";
import { fill, h, icon } from "./dom.js";
import { field, form } from "./forms.js";
import { now } from "./service-clock.js";
import { check } from "./signature.js";
import { link, remark } from "./ui.js";

const WORDS = { passed: ["good", "in order"], failed: ["bad", "broken"], unknown: ["calm", "not checked"] };

export async function verify(_, { signal }) {
  // Any answer tells the time, which a signature is checked against.
  await get("/settings/workspace", {}, signal);
  return {
    title: "Check a signature",
    content: [
      h(
        "p",
        { class: "lead" },
        "Does the other system refuse events, saying that the signature is wrong? Paste what arrived there: this page finds the rule that is broken. " +
          "It calculates in your browser: nothing of it is sent anywhere.",
      ),
      verifyForm({}),
      h("p", {}, link("/docs/guides/verifying", "For your developer: how to check signatures")),
    ],
  };
}

/** The form and its outcome. `headers` and `body`: filled in already, from a delivery. */
export function verifyForm({ headers, body }) {
  const resultArea = h("div", { class: "flow" });
  const code = { dir: "ltr", spellcheck: "false", autocapitalize: "off" };
  return h(
    "div",
    { class: "pair" },
    form(
      {
        submit: "Check",
        send: async ({ headers, body, secret }) => {
          const results = await check({ headers, body, secret, nowMs: now() });
          fill(resultArea, verdict(results), h("ol", { class: "timeline card" }, results.map(rule)));
          announce(
            [resultArea.firstChild.textContent, results.find(({ state }) => state === "failed")?.text ?? ""].join(" "),
          );
        },
      },
      field({
        name: "headers",
        label: "Headers",
        tag: "textarea",
        required: true,
        value: headers,
        rows: 4,
        ...code,
        hint: "The lines with webhook-id, webhook-timestamp and webhook-signature. Other lines do no harm.",
      }),
      raw({
        name: "body",
        label: "Body",
        tag: "textarea",
        required: true,
        value: body,
        rows: 6,
        ...code,
        hint: "Exactly as it arrived: every blank counts.",
      }),
      field({
        name: "secret",
        label: "Secret",
        required: true,
        ...code,
        hint: "whsec_… It stays in this page and is forgotten when you leave it.",
      }),
    ),
    resultArea,
  );
}

/** A field whose value is not trimmed. */
function raw(props) {
  const node = field({ ...props, read: () => node.querySelector("textarea").value });
  return node;
}

function verdict(results) {
  const broken = results.find(({ state }) => state === "failed");
  if (broken === results.at(-1)) return remark("warn", "The signature is right, but the message is not from just now.");
  if (!broken) return remark("good", "The signature is right: a receiver has to accept this message.");
  return remark("bad", `The rule that is broken: ${broken.rule.toLowerCase()}.`);
}

function rule({ rule: name, state, text }) {
  const [kind, word] = WORDS[state];
  return h("li", { class: kind }, icon(kind), h("b", {}, `${name}: ${word}`), h("p", { class: "soft" }, text));
}
