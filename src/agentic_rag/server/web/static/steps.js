// The steps of a question, as list items: what was searched, what came back, what it cost.

import { el, number, say } from "./dom.js";

const compact = (value) =>
  value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

function searched(input) {
  const named = input && typeof input === "object" ? input : {};
  const told = named.keywords ?? named.query ?? named.chunk_ids ?? named.queries ?? named.question;
  return Array.isArray(told) ? told.map(compact).join(", ") : compact(told ?? (typeof input === "string" ? input : ""));
}

const folded = (title, text) =>
  el("details", {}, el("summary", {}, title), el("pre", {}, text));

function cost(event) {
  const parts = [];
  if (event.input_tokens) parts.push(`${number(event.input_tokens)} ${say("input_tokens")}`);
  if (event.output_tokens) parts.push(`${number(event.output_tokens)} ${say("output_tokens")}`);
  if (event.retrieved_tokens) parts.push(`${number(event.retrieved_tokens)} ${say("retrieved_tokens")}`);
  if (event.duration !== undefined) parts.push(`${event.duration.toFixed(1)} ${say("seconds")}`);
  return parts.join(" · ");
}

function hitList(hits, open) {
  if (!hits?.length) return null;
  const items = hits.map((hit) => {
    const place = [hit.title || hit.uri, hit.section, hit.page ? `p. ${hit.page}` : ""].filter(Boolean).join(" › ");
    const name = `[${hit.chunk_id || "web"}] ${place}`;
    const shown = hit.chunk_id
      ? el("button", { type: "button", class: "link", click: () => open(hit) }, name)
      : name;
    return el("li", {}, shown, ` ${hit.snippet}`);
  });
  return el("details", {}, el("summary", {}, say("found", { count: hits.length })), el("ul", {}, items));
}

/** The steps so far in a list; `open(hit)` shows a passage. `full` shows all of every result. */
export class Steps {
  constructor(list, open, full = false) {
    this.list = list;
    this.open = open;
    this.full = full;
    this.running = new Map(); // step or call id -> its item
  }

  add(event) {
    if (event.type === "step_started") this.#begin(event.step, event.name, event.input);
    else if (event.type === "tool_called") this.#begin(event.call_id, event.name, event.arguments);
    else if (event.type === "step_finished") this.#end(event.step, event);
    else if (event.type === "tool_returned") this.#end(event.call_id, event);
    else if (event.type === "thought") this.list.append(el("li", {}, folded(say("thought"), event.text)));
    else if (event.type === "notice") {
      this.list.append(el("li", { class: event.level === "info" ? null : "bad" }, event.message));
    }
  }

  #begin(key, name, input) {
    const item = el("li", {}, el("span", { class: "name working" }, name), " ", searched(input));
    if (this.full && input && Object.keys(input).length) {
      item.append(folded(say("arguments"), JSON.stringify(input, null, 1)));
    }
    this.running.set(key, item);
    this.list.append(item);
  }

  #end(key, event) {
    const item = this.running.get(key) ?? this.list.appendChild(el("li", {}, el("span", { class: "name" }, event.name)));
    item.querySelector(".name")?.classList.remove("working");
    item.append(el("span", { class: "hint" }, ` ${cost(event)}`));
    if (event.error) item.append(el("div", { class: "bad" }, event.error));
    const hits = hitList(event.hits, this.open);
    if (hits) item.append(hits);
    const output = event.text ?? (this.full && Object.keys(event.output ?? {}).length ? JSON.stringify(event.output, null, 1) : "");
    if (output && (this.full || !hits)) item.append(folded(say("result"), output));
  }
}
