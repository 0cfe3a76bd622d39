// Forms: fields with labels, hints and errors; native validation; the service's refusal at its field.

import { IdempotentPost } from "./api.js";
import { fill, h, uniqueId } from "./dom.js";
import { runUnlessBusy, showAndAnnounce, showFailure } from "./ui.js";
import { sentence } from "./words.js";

/**
 * A form. `children` hold fields anywhere within; `send(values, once)` gets the values by field name and an
 * `IdempotentPost`. If it throws, the error is shown at the field that it names, or above the buttons. `kind`: of the
 * button, as for `button`.
 */
export function form({ submit, send, cancel, kind = "main" }, ...children) {
  const once = new IdempotentPost();
  const outcome = h("div", { class: "outcome" });
  const press = h("button", { class: kind }, submit);
  const node = h(
    "form",
    {
      onsubmit: event => {
        event.preventDefault();
        runUnlessBusy(press, async () => {
          fill(outcome);
          fieldsOf(node).forEach(({ clear }) => clear());
          try {
            await send(values(node), once);
          } catch (error) {
            showError(node, outcome, error);
          }
        });
      },
    },
    children,
    outcome,
    h("p", { class: "buttons" }, press, cancel),
  );
  return node;
}

/** Returns the values of the fields within `node`, by name. */
export const values = node => Object.fromEntries(fieldsOf(node).map(({ name, read }) => [name, read()]));

/** Shows an error at its field, if it names one within `node`, or else in `outcome`. */
export function showError(node, outcome, error) {
  const field = error.kind === "refused" && fieldsOf(node).find(({ name }) => name === error.field?.split(/[.[]/)[0]);
  if (field) field.fail(sentence(error));
  else showFailure(outcome, error);
}

/**
 * A field with one control. `tag`: `input` (default), `textarea` or `select` (with `options`: `[[value, text], ...]`);
 * `props` go to the control: `type`, `value`, `required`, `maxlength`, `pattern` and so on.
 */
export function field({ name, label, hint, tag = "input", options = [], read, ...props }) {
  const id = uniqueId(name);
  const error = errorPlace(id);
  const control = h(
    tag,
    { id, name, autocomplete: "off", ...described(id, hint), ...props },
    options.map(([value, text]) => h("option", { value, selected: value === props.value }, text)),
  );
  const node = h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    hint && h("p", { id: `${id}-hint`, class: "hint" }, hint),
    control,
    error,
  );
  return asField(node, name, read ?? (() => control.value.trim()), control, error);
}

/** Shows an error at a field. */
export const failField = (node, text) => FIELDS.get(node).fail(text);

const fieldsOf = node => [...node.querySelectorAll(".field")].map(field => FIELDS.get(field)).filter(Boolean);

const FIELDS = new WeakMap();

/** The place of a field's error. */
export const errorPlace = id => h("div", { id: `${id}-error`, class: "error" });

/** The attribute that ties a field to its hint and its error. */
export const described = (id, hint) => ({ "aria-describedby": `${hint ? `${id}-hint ` : ""}${id}-error` });

/** Makes a node a field of its form. */
export function asField(node, name, read, control, error) {
  const clear = () => {
    fill(error);
    control?.removeAttribute("aria-invalid");
  };
  const fail = text => {
    showAndAnnounce(error, "bad", text);
    control?.setAttribute("aria-invalid", "true");
    control?.focus();
  };
  node.addEventListener("input", clear);
  FIELDS.set(node, { name, read, fail, clear });
  return node;
}
