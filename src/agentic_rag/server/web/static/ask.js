// The view Ask: a conversation, each question's steps as they happen, and its answer.

import { answerBody, answerText } from "./answers.js";
import { call, events } from "./api.js";
import { alarm, byId, el, say, when } from "./dom.js";
import { closeSource, openSource, prepareSources } from "./sources.js";
import { Steps } from "./steps.js";

let session = null; // the id of the conversation, null before its first question
let asking = null; // aborts the question on its way

function settings() {
  const chosen = { strategy: byId("strategy").value, model: byId("model").value.trim() };
  const limits = { max_steps: byId("max-steps").valueAsNumber, token_budget: byId("token-budget").valueAsNumber };
  return Object.fromEntries([
    ...Object.entries(chosen).filter(([, value]) => value),
    ...Object.entries(limits).filter(([, value]) => Number.isFinite(value)),
  ]);
}

function turn(question) {
  byId("empty-ask").hidden = true;
  const made = el("article", { class: "turn" }, el("h2", {}, question));
  byId("turns").append(made);
  return made;
}

const button = (name, click) => el("button", { type: "button", class: "link", click }, say(name));

function actions(question, answer, trace) {
  const copy = async (event) => {
    const sources = answer.citations.map((one) => `[${one.number}] ${one.title || one.uri} (${one.uri})`);
    await navigator.clipboard.writeText([answer.text, "", ...sources].join("\n"));
    event.target.textContent = say("copied");
  };
  const link = trace ? el("a", { href: `#/trace/${trace}` }, say("see_trace")) : null;
  return el("p", { class: "row" }, button("copy", copy), button("again", () => ask(question)), link);
}

async function ask(question) {
  if (asking) return;
  alarm("");
  const place = turn(question);
  const list = el("ol", { class: "steps" });
  const shown = el("details", { open: true }, el("summary", {}, el("span", { class: "working" }, say("working"))), list);
  const draft = el("div", { class: "answer" });
  place.append(shown, draft);
  place.scrollIntoView({ block: "start" });
  const steps = new Steps(list, openSource);
  asking = new AbortController();
  document.querySelector(".options").open = false; // it would stand before what comes
  byId("send").hidden = true;
  byId("stop").hidden = false;
  let text = "";
  const citations = [];
  const settled = (title, open) => { shown.open = open; shown.querySelector("summary").textContent = title; };
  try {
    if (!session) session = (await call("POST", "/api/sessions", {}, asking.signal)).id;
    const body = { question, session, ...settings() };
    for await (const event of events("/api/ask", body, asking.signal)) {
      if (event.type === "answer_delta") {
        text += event.text;
        citations.push(...event.citations);
        draft.replaceChildren(...answerText(text, citations));
      } else if (event.type === "answer_reset") {
        text = "";
        citations.length = 0;
        draft.replaceChildren();
      } else if (event.type === "run_finished") {
        draft.remove();
        place.append(...answerBody(event.answer), actions(question, event.answer, event.trace_id));
        settled(say("steps"), false);
      } else if (event.type === "run_failed") {
        place.append(el("p", { class: "failed", role: "alert" }, event.error), el("p", {}, button("again", () => ask(question))));
        settled(say("steps"), true);
      } else steps.add(event);
    }
  } catch (error) {
    const stopped = error.name === "AbortError";
    settled(say("steps"), true);
    place.append(
      el("p", { class: stopped ? "status" : "failed", role: "alert" }, stopped ? say("stopped") : error.message),
      el("p", {}, button("again", () => ask(question))));
  } finally {
    for (const one of place.querySelectorAll(".working")) one.classList.remove("working");
    asking = null;
    byId("send").hidden = false;
    const stoppedHere = document.activeElement === byId("stop") || document.activeElement === document.body;
    byId("stop").hidden = true;
    if (stoppedHere) byId("question").focus({ preventScroll: true });
    place.scrollIntoView({ block: "nearest" });
    listConversations().catch(() => {});
  }
}

function begin() {
  asking?.abort();
  session = null;
  for (const one of byId("turns").querySelectorAll(".turn")) one.remove();
  byId("empty-ask").hidden = false;
  closeSource();
  byId("question").focus();
}

async function resume(id) {
  const found = await call("GET", `/api/sessions/${encodeURIComponent(id)}`);
  begin();
  session = id;
  for (const { question, answer } of found.turns) turn(question).append(...answerBody(answer), actions(question, answer));
  byId("conversations").open = false;
}

async function listConversations() {
  const { sessions } = await call("GET", "/api/sessions");
  const items = sessions.map((one) => el("li", {},
    el("button", { type: "button", class: "link", click: () => resume(one.id).catch((error) => alarm(error.message)) }, one.title || one.id),
    el("span", { class: "hint" }, one.problem || when(one.changed)),
    el("button", { type: "button", class: "link", "aria-label": `${say("delete")}: ${one.title || one.id}`, click: async () => {
      await call("DELETE", `/api/sessions/${encodeURIComponent(one.id)}`).catch((error) => alarm(error.message));
      if (session === one.id) begin();
      await listConversations();
    } }, say("delete"))));
  byId("conversation-list").replaceChildren(...(items.length ? items : [el("li", { class: "hint" }, say("no_conversations"))]));
}

export function prepare() {
  prepareSources();
  byId("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const question = byId("question").value.trim();
    if (!question || asking) return;
    byId("question").value = "";
    ask(question);
  });
  byId("question").addEventListener("keydown", (event) => {
    // While characters are being composed, Enter chooses among them.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      byId("ask-form").requestSubmit();
    }
  });
  byId("stop").addEventListener("click", () => asking?.abort());
  byId("new-conversation").addEventListener("click", begin);
  byId("conversations").addEventListener("toggle", () => listConversations().catch((error) => alarm(error.message)));
}

export async function show() {
  const { total } = await call("GET", "/api/documents?limit=1");
  byId("empty-ask").textContent = say(total ? "empty_ask" : "no_documents");
  byId("question").focus();
}
