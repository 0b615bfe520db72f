"use strict";
// Elements, words in the reader's language, figures. Text is only ever put in place as text.

const byId = (id) => document.getElementById(id);
const WORDS = JSON.parse(byId("words").textContent);
let language = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";

/** An element; children are elements or text, null is left out. */
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A word in the reader's language, with its {places} filled. */
function say(key, values = {}) {
  return (WORDS[language][key] ?? key).replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
}

const count = (value) => Math.round(value).toLocaleString("en");

/** Put every fixed word of the page into the reader's language. */
function translate() {
  document.documentElement.lang = language;
  for (const one of document.querySelectorAll("[data-w]")) one.textContent = say(one.dataset.w);
  for (const one of document.querySelectorAll("[data-w-label]")) one.setAttribute("aria-label", say(one.dataset.wLabel));
  for (const one of document.querySelectorAll("[data-w-title]")) one.title = say(one.dataset.wTitle);
  byId("theme").title = say("theme");
  const made = byId("made");
  made.textContent = say("program", made.dataset);
}

/** Replace light by dark or the other way round, whatever the system has. */
function turnTheme() {
  const root = document.documentElement;
  const dark = root.style.colorScheme ? root.style.colorScheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.style.colorScheme = dark ? "light" : "dark";
}
