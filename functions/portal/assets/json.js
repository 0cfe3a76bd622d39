// Shows JSON with colours. The service writes a body on one line: breaks and indentation are elements without text, so
// that the text stays, byte for byte, what was sent.

import { h } from "./dom.js";

// A string with the colon of a name, a number, a word, a bracket with something in it, its end, a comma or a colon.
const TOKEN =
  /("(?:[^"\\]|\\.)*")(?=(\s*:)?)|(-?\d[\d.eE+-]*)|(true|false|null)|([[{])(?!\s*[\]}])|(?<![[{]\s*)([\]}])|(,)|(:)/g;

/** Returns nodes with the text of `text`: coloured if it is JSON. */
export function json(text) {
  if (!isJson(text)) return [text];
  const isOnOneLine = !text.includes("\n");
  const nodes = [];
  let depth = 0;
  let end = 0;
  const lineBreak = () =>
    isOnOneLine && nodes.push(h("br"), ...Array.from({ length: depth }, () => h("span", { class: "indent" })));
  for (const { index, 0: token, 1: string, 2: name, 3: number, 4: word, 5: begins, 6: ends, 7: comma } of text.matchAll(
    TOKEN,
  )) {
    if (index > end) nodes.push(text.slice(end, index));
    end = index + token.length;
    if (ends) depth -= 1;
    if (ends) lineBreak();
    const kind =
      (name && "p") || (string && "s") || (number && "n") || (word && "k") || (token === ":" && isOnOneLine && "gap");
    nodes.push(kind ? h("span", { class: kind }, token) : token);
    if (begins) depth += 1;
    if (begins || comma) lineBreak();
  }
  return [...nodes, text.slice(end)];
}

function isJson(text) {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}
