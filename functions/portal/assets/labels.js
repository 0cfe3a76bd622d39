// Labels: what things of one kind are called, so that each can be told from the others.

/**
 * Gives each item a `label`: the first of the `forms` that no other item shares. A form is a function of an item that
 * returns a text, or null if it does not fit the item. The last form is unique.
 */
export function labelled(items, forms) {
  const texts = forms.map(form => items.map(form));
  const isApart = (form, at) => form[at] !== null && form.indexOf(form[at]) === form.lastIndexOf(form[at]);
  return items.map((item, at) => ({ ...item, label: (texts.find(form => isApart(form, at)) ?? texts.at(-1))[at] }));
}

/** Shortens a text in its middle: what tells addresses apart is often at their end. */
export function shortened(text, most) {
  const characters = [...text];
  if (characters.length <= most) return text;
  const end = Math.ceil(most / 2);
  return `${characters.slice(0, most - end).join("")}…${characters.slice(-end).join("")}`;
}
