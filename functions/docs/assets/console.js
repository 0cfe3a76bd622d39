// The console: sends the request of an operation from the page. The key lives in this page's memory alone; nothing of a
// request or an answer is stored.
"use strict";

const secrets = { key: "", session: "" };
// A write acts on real data. The reader is asked once on a page.
let mayWrite = false;

const IDEMPOTENCY_KEY = "Idempotency-Key";

/** Colours JSON. Any other text stays plain. */
function coloured(text) {
  const parts = text.split(/("(?:[^"\\]|\\.)*"(?:\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)/gi);
  return parts.map((part, at) => {
    if (at % 2 === 0) return part;
    const kind = part.endsWith(":") ? "p" : part.startsWith('"') ? "s" : /^[-\d]/.test(part) ? "n" : "k";
    return h("span", { class: kind }, part);
  });
}

function panel(title, ...content) {
  return h("figure", { class: "code" }, h("figcaption", {}, h("span", {}, title)), h("pre", { tabindex: "0" }, h("code", {}, ...content)));
}

/** A field with its label. `input` is the element that holds the value. */
function field(label, hint, input) {
  return h("label", {}, h("span", {}, h("b", {}, label), ` ${hint}`), input);
}

function makeConsole(operation) {
  const inputs = new Map();
  const rows = operation.parameters.map(({ name, in: place, required, value }) => {
    const isKey = name === IDEMPOTENCY_KEY;
    // What callers may leave out is left out until they fill it in.
    const filled = isKey ? crypto.randomUUID() : required ? value : "";
    const input = h("input", { type: "text", value: filled, autocomplete: "off", spellcheck: "false" });
    inputs.set(name, { input, place });
    return field(name, `${place}${required ? ", required" : ""}`, input);
  });
  const name = operation.isSession ? "session" : "key";
  const secret = h("input", { type: "password", value: secrets[name], autocomplete: "off" });
  secret.addEventListener("input", () => { secrets[name] = secret.value; });
  const body = operation.body && h("textarea", { spellcheck: "false" });
  if (body) body.value = operation.body;
  const outcome = h("div", { class: "samples", role: "status" });
  const send = h("button", { type: "submit", class: "main" }, "Send");
  const acts = h("p", { class: "acts" }, send);
  if (inputs.has(IDEMPOTENCY_KEY)) {
    const renew = () => { inputs.get(IDEMPOTENCY_KEY).input.value = crypto.randomUUID(); };
    acts.append(h("button", { type: "button", onclick: renew }, "New idempotency key"));
  }
  const form = h("form", { class: "console", "aria-label": `Try ${operation.method} ${operation.path}` });
  if (operation.credential) form.append(field(operation.credential, "stays in the memory of this page", secret));
  form.append(...rows);
  if (body) form.append(field("Body", "JSON", body));
  form.append(acts, outcome);

  const request = () => {
    let path = operation.path;
    const query = new URLSearchParams();
    const headers = new Headers();
    for (const [name, { input, place }] of inputs) {
      if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(input.value));
      else if (input.value && place === "query") query.set(name, input.value);
      else if (input.value) headers.set(name, input.value);
    }
    if (secret.value) headers.set("Authorization", `Bearer ${secret.value}`);
    if (body?.value) headers.set("Content-Type", "application/json");
    const address = `${path}${query.size ? `?${query}` : ""}`;
    const options = { method: operation.method, headers, body: body?.value || undefined };
    return new Request(address, { ...options, credentials: "omit", cache: "no-store", redirect: "manual" });
  };

  const run = async () => {
    send.setAttribute("aria-disabled", "true");
    try {
      const began = performance.now();
      const answer = await fetch(request());
      const text = await answer.text();
      const took = Math.round(performance.now() - began);
      const isJson = answer.headers.get("content-type")?.includes("json");
      const shown = isJson && text ? coloured(JSON.stringify(JSON.parse(text), null, 2)) : [text];
      const headers = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
      const dot = h("span", { class: answer.ok ? "dot" : "dot error", "aria-hidden": "true" });
      const title = h("span", {}, dot, ` ${answer.status} ${answer.statusText} in ${took} ms`);
      outcome.replaceChildren(panel(title, ...shown), panel("Headers", headers));
    } catch (error) {
      outcome.replaceChildren(h("p", {}, `The request cannot be sent: ${error.message}`));
    } finally {
      send.removeAttribute("aria-disabled");
    }
  };

  const ask = () => {
    const yes = h("button", { type: "button", class: "danger" }, "Send it");
    const no = h("button", { type: "button" }, "Do not send");
    const question = h("p", {}, "This request acts on real data, as a request from your own system would.");
    outcome.replaceChildren(h("div", { class: "callout warn" }, h("div", {}, question, h("p", { class: "acts" }, yes, no))));
    yes.addEventListener("click", () => {
      mayWrite = true;
      send.focus();
      run();
    });
    no.addEventListener("click", () => {
      outcome.replaceChildren();
      send.focus();
    });
    yes.focus();
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (send.getAttribute("aria-disabled") === "true") return;
    if (operation.method === "GET" || mayWrite) run();
    else ask();
  });
  return form;
}

/** Opens the console of an operation in the place of its button. Another console of the page gives it the secrets. */
window.openConsole = (button) => {
  const form = makeConsole(JSON.parse(button.dataset.request));
  button.replaceWith(form);
  form.querySelector("input, textarea, button").focus();
};
