// The view Documents: adding, what is being indexed, the list, and one document with its chunks.

import { call } from "./api.js";
import { alarm, baseName, byId, bytes, el, number, say, when } from "./dom.js";

const PAGE = 50;
const CHUNKS = 20;
const OFTEN = 700; // milliseconds between looks at work that is going on

let cursor = null;
let watching = null;
let working = false; // whether there was work going on at the last look
let shown = 0; // the number of the newest list request; slower earlier ones are dropped

const guarded = (work) => (...given) => work(...given).catch((error) => alarm(error.message));

function row(one) {
  const reason = one.reason ? el("span", { class: "hint" }, one.reason) : null;
  const name = one.title || baseName(one.uri);
  const remove = guarded(async () => {
    if (!window.confirm(say("remove_sure", { name }))) return;
    await call("DELETE", `/api/documents/${one.number}`);
    await list();
  });
  return el("tr", {},
    el("td", {}, el("a", { href: `#/documents/${one.number}` }, name), el("span", { class: "hint" }, one.uri)),
    el("td", {}, el("span", { class: one.status }, say(one.status)), reason),
    el("td", { class: "number" }, number(one.chunks)),
    el("td", { class: "number" }, bytes(one.size)),
    el("td", {}, when(one.indexed_at)),
    el("td", {}, el("button", { type: "button", class: "link", "aria-label": `${say("delete")}: ${name}`, click: remove }, say("delete"))));
}

async function list(more = false) {
  const mine = ++shown;
  const asked = new URLSearchParams({ limit: PAGE });
  if (byId("document-query").value.trim()) asked.set("q", byId("document-query").value.trim());
  if (byId("document-state").value) asked.set("status", byId("document-state").value);
  if (more && cursor !== null) asked.set("cursor", cursor);
  const page = await call("GET", `/api/documents?${asked}`);
  if (mine !== shown) return;
  cursor = page.next ?? null;
  const rows = page.documents.map(row);
  if (more) byId("document-rows").append(...rows);
  else byId("document-rows").replaceChildren(...(rows.length ? rows : [el("tr", {}, el("td", { colspan: 6, class: "hint" }, say("nothing_found")))]));
  byId("more-documents").hidden = cursor === null;
  byId("document-count").textContent = say("of_documents", { count: number(page.total) });
}

function jobItem(job) {
  const total = job.total ?? null;
  const running = job.state === "running" || job.state === "queued";
  const bar = running ? el("progress", { value: total ? job.done : null, max: total }) : null;
  const failures = (job.documents ?? []).filter((one) => one.reason)
    .map((one) => el("li", { class: "failed" }, `${baseName(one.uri)}: ${one.reason}`));
  const cancel = running
    ? el("button", { type: "button", class: "link", click: guarded(async () => { await call("DELETE", `/api/jobs/${job.id}`); await look(); }) }, say("cancel"))
    : null;
  return el("div", { class: "job" },
    el("div", { class: "row" }, el("span", {}, job.names.map(baseName).join(", ")), el("span", { class: `hint ${job.state}` }, say(`job_${job.state}`)),
      el("span", { class: "hint" }, job.detail ?? ""), cancel),
    bar, job.error ? el("p", { class: "failed" }, job.error) : null, failures.length ? el("ul", {}, failures) : null);
}

/** Look at the work going on, and again while there is any; when it ends the list is new. */
async function look() {
  clearTimeout(watching);
  const { jobs } = await call("GET", "/api/jobs?limit=8");
  byId("jobs").replaceChildren(...jobs.map(jobItem));
  const busy = jobs.some((job) => job.state === "running" || job.state === "queued");
  if (busy && !byId("view-documents").hidden) watching = setTimeout(guarded(look), OFTEN);
  if (working && !busy) await list();
  working = busy;
}

async function add(files) {
  if (!files.length) return;
  alarm("");
  const form = new FormData();
  for (const file of files) form.append("files", file, file.name);
  await call("POST", "/api/documents", form);
  working = true;
  await look();
}

function prepareAdding() {
  byId("files").addEventListener("change", guarded(async () => {
    await add([...byId("files").files]);
    byId("files").value = "";
  }));
  const drop = byId("drop");
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", guarded(async (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    await add([...event.dataTransfer.files]);
  }));
  byId("url-form").addEventListener("submit", guarded(async (event) => {
    event.preventDefault();
    alarm("");
    await call("POST", "/api/documents/url", { url: byId("url").value.trim() });
    working = true;
    byId("url").value = "";
    await look();
  }));
}

export function prepare() {
  prepareAdding();
  let typing;
  byId("document-query").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(guarded(list), 250);
  });
  byId("document-state").addEventListener("change", guarded(() => list()));
  byId("more-documents").addEventListener("click", guarded(() => list(true)));
  byId("retry").addEventListener("click", guarded(async () => { await call("POST", "/api/documents/retry"); working = true; await look(); }));
}

async function chunksOf(document_, from) {
  const page = await call("GET", `/api/documents/${document_}/chunks?limit=${CHUNKS}&cursor=${from}`);
  byId("document-chunks").append(...page.chunks.map((one) => el("div", {},
    el("p", { class: "place" }, [one.chunk_id, one.section, one.page ? `p. ${one.page}` : ""].filter(Boolean).join(" › ")),
    el("div", { class: "text" }, one.text))));
  const next = page.next ?? null;
  byId("more-chunks").hidden = next === null;
  byId("more-chunks").onclick = guarded(() => chunksOf(document_, next));
}

/** Show the list, or the document of that number. */
export async function show(document_) {
  byId("document").hidden = !document_;
  byId("document-list").hidden = Boolean(document_);
  if (!document_) { await Promise.all([list(), look()]); return; }
  const found = await call("GET", `/api/documents/${encodeURIComponent(document_)}`);
  byId("document-title").textContent = found.title || baseName(found.uri);
  byId("document-facts").textContent = [found.uri, found.media_type, say(found.status), found.reason, bytes(found.size), when(found.indexed_at)].filter(Boolean).join(" · ");
  byId("document-chunks").replaceChildren();
  await chunksOf(document_, 0);
  byId("document-title").focus();
}
