// An answer as it is read: text with marks, sources, what it cost.

import { el, number, say } from "./dom.js";
import { markdown } from "./markdown.js";
import { openSource } from "./sources.js";

/** The elements of an answer's text; marks open the source of that number. */
export function answerText(text, citations) {
  const known = new Map(citations.map((one) => [one.number, one]));
  return markdown(text, (n) => {
    const citation = known.get(n);
    if (!citation) return null;
    const label = `${say("source")} ${n}: ${citation.title || citation.uri}`;
    return el("button", { type: "button", class: "cite", "aria-label": label, click: () => openSource(citation) }, `[${n}]`);
  });
}

function sourceItem(citation) {
  const place = [citation.title || citation.uri, citation.section, citation.page ? `p. ${citation.page}` : ""].filter(Boolean).join(" › ");
  const added = citation.made_by === "matched" ? el("span", { class: "hint" }, ` (${say("made_matched")})`) : null;
  return el("li", {},
    el("button", { type: "button", class: "link", click: () => openSource(citation) }, `[${citation.number}] ${place}`), added);
}

export function usageLine(answer) {
  const usage = answer.usage;
  const line = say("usage", {
    input: number(usage.input_tokens), output: number(usage.output_tokens),
    retrieved: number(usage.retrieved_tokens), requests: number(usage.model_requests),
    seconds: answer.seconds.toFixed(1),
  });
  const cost = usage.cost ? ` · ${say("cost", { cost: usage.cost.toFixed(4) })}` : "";
  return `${answer.strategy} · ${answer.model} · ${line}${cost}`;
}

/** Everything below a question, of an answer that is whole. */
export function answerBody(answer) {
  const made = [];
  if (answer.status !== "answered") made.push(el("p", { class: "status" }, say(`status_${answer.status}`)));
  made.push(el("div", { class: "answer" }, answerText(answer.text, answer.citations)));
  if (answer.unsupported.length) {
    made.push(el("p", { class: "hint" }, say("unsupported")), el("ul", { class: "hint" }, answer.unsupported.map((one) => el("li", {}, one))));
  }
  if (answer.citations.length) {
    made.push(el("h3", {}, say("sources")), el("ul", { class: "sources" }, answer.citations.map(sourceItem)));
  }
  made.push(el("p", { class: "hint" }, usageLine(answer)));
  return made;
}
