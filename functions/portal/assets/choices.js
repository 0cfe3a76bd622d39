// Groups of choices in a form: radio buttons or checkboxes.

import { fill, h, uniqueId } from "./dom.js";
import { asField, described, errorPlace } from "./forms.js";

/**
 * A group of choices: `kind` `radio` (the value is one value) or `checkbox` (an array). `choices`:
 * `[{ value, label, hint?, group? }]`, those of a group together; `chosen`: values that are
 * selected at the start. `required`: at least one must be chosen, which the hint of checkboxes
 * says.
 */
export function choices({ name, legend, hint, kind, choices, chosen = [], required = false, onchange }) {
  const id = uniqueId(name);
  const hints = [required && kind === "checkbox" && "Choose at least one.", hint].filter(Boolean).join(" ");
  const error = errorPlace(id);
  const boxes = choices.map(choice =>
    h("input", {
      type: kind,
      id: uniqueId(name),
      name: id,
      value: choice.value,
      checked: chosen.includes(choice.value),
      required: required && kind === "radio",
    }),
  );
  const read = () => boxes.filter(box => box.checked).map(box => box.value);
  const check = () => {
    const missing = required && kind === "checkbox" && !read().length;
    boxes[0]?.setCustomValidity(missing ? "Choose at least one." : "");
  };
  check();
  const row = (choice, at) =>
    h(
      "div",
      { class: "choice" },
      boxes[at],
      h("label", { for: boxes[at].id }, choice.label, choice.hint && h("span", { class: "hint" }, choice.hint)),
    );
  const node = h(
    "fieldset",
    {
      id,
      class: "field",
      ...described(id, hints),
      onchange: () => {
        check();
        onchange?.(kind === "radio" ? read()[0] : read());
      },
    },
    h("legend", {}, legend),
    hints && h("p", { id: `${id}-hint`, class: "hint" }, hints),
    inGroups(choices, row),
    error,
  );
  return asField(node, name, kind === "radio" ? () => read()[0] ?? null : read, boxes[0], error);
}

/**
 * Radio buttons of which one is chosen, and what belongs to the chosen one below them. `parts`: nodes by value. What
 * was written there stays while another value is chosen, and counts again when the first one is. The rest as for
 * `choices`.
 */
export function choiceWithParts({ parts, onchange, ...props }) {
  const area = h("div", { class: "flow" });
  const show = value => fill(area, parts[value]);
  const choose = value => {
    show(value);
    onchange?.(value);
  };
  show(props.chosen?.[0]);
  return [choices({ ...props, kind: "radio", required: true, onchange: choose }), area];
}

/** Chooses these values of a group of choices, and no others, as if the coach had. */
export function choose(node, values) {
  for (const box of node.querySelectorAll("input")) box.checked = values.includes(box.value);
  node.dispatchEvent(new Event("change"));
}

/** Renders each choice, those of a group together under its heading. */
function inGroups(items, render) {
  const groups = [...new Set(items.map(({ group }) => group))];
  return groups.map(group => {
    const members = h(
      "div",
      { class: "options" },
      items.map((item, at) => item.group === group && render(item, at)),
    );
    return group
      ? h("div", { role: "group", "aria-label": group }, h("p", { class: "group" }, group), members)
      : members;
  });
}
