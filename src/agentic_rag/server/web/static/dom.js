// Building the page. Text goes in as text nodes only: documents and models are not trusted.

const read = (id) => JSON.parse(document.getElementById(id).textContent);
export const facts = read("facts");
const words = read("words");

/** What the page says under `name`, with {placeholders} filled in. */
export const say = (name, values = {}) =>
  (words[name] ?? name).replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");

export const byId = (id) => document.getElementById(id);

/** An element; attributes that are functions become listeners, null and false ones are left out. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((one) => one !== null && one !== undefined));
  return made;
}

export const number = (value) => Number(value ?? 0).toLocaleString(document.documentElement.lang);

export function bytes(size) {
  const units = ["B", "kB", "MB", "GB"];
  let step = 0;
  while (size >= 1000 && step < units.length - 1) [size, step] = [size / 1000, step + 1];
  return `${size >= 10 || step === 0 ? Math.round(size) : size.toFixed(1)} ${units[step]}`;
}

export const when = (iso) => {
  const moment = new Date(iso);
  return Number.isNaN(moment.valueOf()) ? "" : moment.toLocaleString(document.documentElement.lang);
};

/** Show an error at the top of the page; "" takes it away. */
export function alarm(message) {
  byId("alert").textContent = message;
  byId("alert").hidden = !message;
}

/** The last part of a path or address, for people; only addresses have percent signs for letters. */
export const baseName = (uri) => {
  const name = uri.replace(/\/+$/, "").split("/").pop() || uri;
  if (!/^https?:/i.test(uri)) return name;
  try { return decodeURIComponent(name); } catch { return name; }
};
