// Builds DOM nodes. Nothing in the portal uses innerHTML: the page's policy requires Trusted Types.

const SVG = "http://www.w3.org/2000/svg";
const ICONS = document.querySelector("meta[name=icons]").content;

/**
 * Creates an element. Properties: `class`; `on<event>` with a function; `true` sets an empty attribute; `false`, `null`
 * and `undefined` set none; `value`, `checked` and `indeterminate` are set as DOM properties; anything else is an
 * attribute. Children: nodes, text, numbers, nested arrays; `null`, `undefined` and `false` are skipped.
 */
export const h = (tag, props, ...children) => build(document.createElement(tag), props, children);

/** Creates an element of SVG, as `h` does. */
export const svg = (tag, props, ...children) => build(document.createElementNS(SVG, tag), props, children);

/** Creates an icon of the file of icons. It repeats the words beside it, so screen readers skip it. */
export const icon = name =>
  svg("svg", { class: "icon", "aria-hidden": "true" }, svg("use", { href: `${ICONS}#${name}` }));

/** Replaces all children of `node`; children as for `h`. */
export function fill(node, ...children) {
  node.replaceChildren(...flat(children));
  return node;
}

/**
 * Shows text that a person or another system wrote: its direction is its own, and it cannot change its surroundings.
 */
export const userText = (text, props) => h("bdi", { dir: "auto", ...props }, text);

/** Shows a web address, an id or a key: left to right in every language, and broken anywhere if it is long. */
export const code = (text, props) => h("code", { dir: "ltr", ...props }, text);

/** Returns an id that is unique in the page, for labels and descriptions. */
export const uniqueId = prefix => `${prefix}-${(nextId += 1)}`;

let nextId = 0;

function build(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "indeterminate") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...flat(children));
  return node;
}

function flat(children) {
  return children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false);
}
