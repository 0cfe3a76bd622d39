// The screen "Requests": what other systems asked for with the keys.

import { path } from "./api.js";
import { LIMITS } from "./domain.js";
import { h } from "./dom.js";
import { choiceFilter, filteredList, timeFilters } from "./filtered-list.js";
import { time } from "./format.js";
import { knownKeys } from "./key-list.js";
import { OUTCOMES, asked, explanation, keyLink, outcomeBadges } from "./request-words.js";
import { empty, link } from "./ui.js";

const COLUMNS = [["What it asked for"], ["Outcome", "sign"], ["Key"], ["When", "number"], ["What happened", "wide"]];

// Titles for a list without items, by the filter of the outcome.
const NOTHING = {
  "2xx": "Nothing was done in this time",
  "4xx": "Nothing was refused in this time",
  "5xx": "Nothing failed in this time",
};

export async function requests(_, page) {
  const known = await knownKeys(page.signal);
  const list = await filteredList({
    source: "/settings/requests",
    page,
    names: ["key_id", "status", "since", "until"],
    fields: filters => [
      choiceFilter("key_id", "Key", keyChoices(known, filters.key_id), filters),
      choiceFilter("status", "Outcome", OUTCOMES, filters),
      timeFilters(filters),
    ],
    noun: "request",
    lookedAt: LIMITS.requestsLookedAt,
    none: ({ status }) => NOTHING[status],
    empty: empty(
      "enter",
      `No request in the last ${LIMITS.requestsKeptDays} days`,
      h(
        "p",
        { class: "soft" },
        "Once a system changes something with one of your keys, or is refused, you see it here.",
      ),
    ),
    label: "Requests",
    columns: COLUMNS,
    show: request => cells(request, known),
  });
  return {
    title: "Requests",
    content: [
      h("p", { class: "lead" }, "What other systems did with your keys, and what was refused, newest first."),
      h(
        "p",
        { class: "hint" },
        `Each is kept for ${LIMITS.requestsKeptDays} days: who asked, for what, and how it ended, never the content. `,
        "Usually these are changes and refusals, not what a system only read. ",
        "What was turned away before it reached this service is not here.",
      ),
      list,
    ],
  };
}

/** The choices of a key. A revoked key of a later page of keys has no name here. */
function keyChoices(known, chosen) {
  const choices = [...known.values()].map(({ id, label }) => [id, label]);
  return chosen && !known.has(chosen) ? [...choices, [chosen, chosen]] : choices;
}

function cells(request, known) {
  const { id, at, key_id: key } = request;
  // Many requests ask for the same: in a list of links, the time and the key tell them apart.
  const words = [
    asked(request),
    h("span", { class: "unseen" }, " at ", time(at), ", with ", known.get(key)?.label ?? key),
  ];
  return [
    link(path`#/requests/${id}?at=${at}`, words),
    outcomeBadges(request),
    keyLink(known, key),
    time(at),
    explanation(request),
  ];
}
