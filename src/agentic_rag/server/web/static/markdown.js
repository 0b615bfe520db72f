// Markdown of an answer as elements. Nothing in it can become HTML: a document or a model that
// writes <script> shows it as text. Links go to http and https only.

import { el } from "./dom.js";

const INLINE = /(`+)([^]*?[^`])\1(?!`)|\*\*([^*]+)\*\*|(?<![\w.])__([^_]+)__(?!\w)|\*([^*\s][^*]*)\*|\[(\d{1,3})\](?!\()|\[([^\]]+)\]\(([^)\s]+)\)/;

/** Inline text; `cite(number)` makes the element of a mark `[n]`, or null where there is none. */
function inline(text, cite) {
  const made = [];
  for (let rest = text; rest;) {
    const found = INLINE.exec(rest);
    if (!found) { made.push(rest); break; }
    if (found.index) made.push(rest.slice(0, found.index));
    const [whole, , code, strong, underlined, soft, mark, label, target] = found;
    if (code !== undefined) made.push(el("code", {}, code.trim()));
    else if (strong ?? underlined) made.push(el("strong", {}, inline(strong ?? underlined, cite)));
    else if (soft) made.push(el("em", {}, inline(soft, cite)));
    else if (mark) made.push(cite(Number(mark)) ?? whole);
    else if (/^https?:\/\//i.test(target)) {
      made.push(el("a", { href: target, rel: "noopener noreferrer nofollow", target: "_blank" }, label));
    } else made.push(whole);
    rest = rest.slice(found.index + whole.length);
  }
  return made;
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((one) => one.trim());
const BULLET = /^\s*[-*+•]\s+/;
const COUNTED = /^\s*\d{1,3}[.)、]\s+/;

/** The blocks of `text`, as an array of elements. */
export function markdown(text, cite = () => null) {
  const made = [];
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    const taken = (fits) => {
      const from = at;
      while (at < lines.length && fits(lines[at])) at += 1;
      return lines.slice(from, at);
    };
    if (!line.trim()) { at += 1; continue; }
    if (/^\s*```/.test(line)) {
      at += 1;
      const code = taken((one) => !/^\s*```/.test(one));
      at += 1;
      made.push(el("pre", {}, el("code", {}, code.join("\n"))));
    } else if (/^#{1,6}\s/.test(line)) {
      at += 1;
      made.push(el("h3", {}, inline(line.replace(/^#+\s*/, ""), cite)));
    } else if (line.includes("|") && /^[\s|:-]+$/.test(lines[at + 1] ?? "") && lines[at + 1].includes("-")) {
      const rows = taken((one) => one.includes("|"));
      const head = cells(rows[0]).map((one) => el("th", { scope: "col" }, inline(one, cite)));
      const body = rows.slice(2).map((row) => el("tr", {}, cells(row).map((one) => el("td", {}, inline(one, cite)))));
      made.push(el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body))));
    } else if (BULLET.test(line) || COUNTED.test(line)) {
      const [pattern, tag] = BULLET.test(line) ? [BULLET, "ul"] : [COUNTED, "ol"];
      const start = tag === "ol" ? parseInt(line, 10) : null;
      const items = taken((one) => pattern.test(one));
      made.push(el(tag, { start }, items.map((one) => el("li", {}, inline(one.replace(pattern, ""), cite)))));
    } else {
      const from = at;
      at += 1;
      taken((one) => one.trim() && !/^\s*```|^#{1,6}\s/.test(one) && !BULLET.test(one) && !COUNTED.test(one));
      const content = lines.slice(from, at).flatMap((one, n) => [n ? el("br") : null, ...inline(one, cite)]);
      made.push(el("p", {}, content));
    }
  }
  return made;
}
