// The view Trace: any past question step by step, with a chart of what each step cost.

import { answerBody } from "./answers.js";
import { call } from "./api.js";
import { byId, el, number, say, when } from "./dom.js";
import { Steps } from "./steps.js";

const PAGE = 30;
const SVG = "http://www.w3.org/2000/svg";
const ROW = 46; // of the chart, in its own units
const LEFT = 130;
const WIDE = 430;

let cursor = null;

function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Steps that cost something: fixed strategies' stages, and the agent's tool calls. */
const costly = (trace) => trace.filter((event) =>
  (event.type === "step_finished" || event.type === "tool_returned") &&
  (event.duration || event.input_tokens || event.output_tokens || event.retrieved_tokens));

function chart(trace) {
  const steps = costly(trace);
  const parts = [["in", "input_tokens"], ["out", "output_tokens"], ["retrieved", "retrieved_tokens"]];
  const most = Math.max(1, ...steps.map((one) => Math.max(...parts.map(([, name]) => one[name] ?? 0))));
  const made = svg("svg", { class: "chart", viewBox: `0 0 ${LEFT + WIDE + 110} ${steps.length * ROW + 26}`, role: "img", "aria-label": say("tokens_by_step") });
  parts.forEach(([kind, name], at) => {
    made.append(svg("rect", { class: kind, x: LEFT + at * 150, y: 4, width: 11, height: 11 }), svg("text", { x: LEFT + at * 150 + 16, y: 14 }, say(name)));
  });
  steps.forEach((step, at) => {
    const top = 26 + at * ROW;
    made.append(svg("text", { x: 0, y: top + 22 }, `${at + 1}. ${step.name}`.slice(0, 18)));
    parts.forEach(([kind, name], line) => {
      const count = step[name] ?? 0;
      const bar = svg("rect", { class: kind, x: LEFT, y: top + line * 12 + 2, width: Math.max(count ? 2 : 0, (WIDE * count) / most), height: 10 });
      bar.append(svg("title", {}, `${number(count)} ${say(name)}`));
      made.append(bar);
    });
    made.append(svg("text", { x: LEFT + WIDE + 10, y: top + 22 }, `${(step.duration ?? 0).toFixed(1)} ${say("seconds")}`));
  });
  return made;
}

async function list(more = false) {
  const asked = new URLSearchParams({ limit: PAGE });
  if (more && cursor !== null) asked.set("cursor", cursor);
  const page = await call("GET", `/api/traces?${asked}`);
  cursor = page.next ?? null;
  const items = page.traces.map((one) => el("li", {},
    el("a", { href: `#/trace/${one.id}` }, one.question),
    el("span", { class: "hint" }, `${one.strategy} · ${one.status === "answered" ? "" : `${say(`status_${one.status}`)} · `}${when(one.asked)}`)));
  if (more) byId("traces").append(...items);
  else byId("traces").replaceChildren(...(items.length ? items : [el("li", { class: "hint" }, say("no_traces"))]));
  byId("more-traces").hidden = cursor === null;
}

export function prepare() {
  byId("more-traces").addEventListener("click", () => list(true));
}

/** Show the list, or the trace of that id. */
export async function show(id) {
  byId("trace").hidden = true; // until it is there
  byId("trace-list").hidden = Boolean(id);
  if (!id) { await list(); return; }
  const answer = await call("GET", `/api/traces/${encodeURIComponent(id)}`);
  byId("trace-question").textContent = answer.question;
  byId("trace-facts").textContent = "";
  byId("trace-answer").replaceChildren(...answerBody(answer));
  byId("trace-chart").replaceChildren(chart(answer.trace));
  const list_ = byId("trace-steps");
  list_.replaceChildren();
  const steps = new Steps(list_, (hit) => { location.hash = `#/documents/${hit.chunk_id.split("-")[0]}`; }, true);
  for (const event of answer.trace) steps.add(event);
  for (const one of list_.querySelectorAll(".working")) one.classList.remove("working");
  byId("trace").hidden = false;
  byId("trace-question").focus();
}
