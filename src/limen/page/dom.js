// SPDX-License-Identifier: Apache-2.0
// Elements out of the templates of serve.html. Text is only ever set as text, never as markup.

export const find = (id) => document.getElementById(id);

// A copy of a template, and its places by the names in data-fill.
export const copied = (id) => {
  const made = find(id).content.cloneNode(true);
  const places = {};
  for (const each of made.querySelectorAll("[data-fill]")) places[each.dataset.fill] = each;
  return [made, places];
};

// An element with text or elements inside.
export const element = (name, attributes = {}, ...inside) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
};

// Only what differs is written, so that a reader's selection and a screen reader stay undisturbed.
export const write = (place, text) => {
  if (place.textContent !== text) place.textContent = text;
};

export const show = (place, shown = true) => {
  if (place.hidden === shown) place.hidden = !shown;
};

// A row of a table; a cell is text or an element.
export const row = (cells, attributes = {}) => element("tr", attributes, ...cells.map((cell) => element("td", {}, cell)));

// Write the rows of a table again, unless they read the same.
export const rows = (body, made) => {
  const text = (list) => [...list].map((each) => `${each.className}\t${[...each.children].map((cell) => cell.textContent).join("\t")}`).join("\n");
  if (text(body.children) !== text(made)) body.replaceChildren(...made);
};

// Say what was wrong beside a form, and move the focus there.
export const refuse = (place, text, field = null) => {
  show(place);
  write(place, text);
  if (field) field.setAttribute("aria-invalid", "true");
  (field || place).focus();
};
export const pardon = (place, field = null) => {
  show(place, false);
  write(place, "");
  if (field) field.removeAttribute("aria-invalid");
};
