// The panel of a source: the chunk with what was cited highlighted, its neighbours, its page.

import { call, pdfAddress } from "./api.js";
import { alarm, byId, el, say } from "./dom.js";

const SEAM = " … "; // between the sentences of a snippet
let from = null; // the element that opened the panel; closing gives the focus back
let first = null;
let last = null;

const pattern = (sentence) =>
  sentence.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("\\s+");

/** `text` with the sentences of `snippet` marked. */
export function highlighted(text, snippet) {
  const sentences = (snippet ?? "").split(SEAM).map((one) => one.replace(/^…|…$/g, "").trim()).filter((one) => one.length > 1);
  if (!sentences.length) return [text];
  const wanted = new RegExp(`(${sentences.map(pattern).join("|")})`, "g");
  return text.split(wanted).map((part, n) => (n % 2 ? el("mark", {}, part) : part));
}

const address = (id, before = 0, after = 0) =>
  `/api/chunks/${encodeURIComponent(id)}?before=${before}&after=${after}`;

const block = (chunk, snippet) => el("div", { class: "text", "data-chunk": chunk.chunk_id }, highlighted(chunk.text, snippet));

async function neighbours(side) {
  const edge = side === "before" ? first : last;
  const found = await call("GET", address(edge, Number(side === "before"), Number(side === "after")));
  const [document_, at] = edge.split("-");
  const wanted = `${document_}-${Number(at) + (side === "before" ? -1 : 1)}`;
  const chunk = found.chunks.find((one) => one.chunk_id === wanted);
  if (!chunk) { byId(`source-${side}`).hidden = true; return; }
  if (side === "before") { byId("source-text").prepend(block(chunk)); first = wanted; }
  else { byId("source-text").append(block(chunk)); last = wanted; }
}

function links(hit) {
  const made = [];
  if (/^https?:\/\//i.test(hit.uri)) {
    made.push(el("a", { href: hit.uri, target: "_blank", rel: "noopener noreferrer" }, hit.uri));
  }
  if (hit.chunk_id) {
    const [document_] = hit.chunk_id.split("-");
    const isPdf = /\.pdf$/i.test(hit.uri) && hit.page;
    const open = async () => {
      try {
        const opened = await pdfAddress(`/api/documents/${document_}/file`);
        window.open(isPdf ? `${opened}#page=${hit.page}` : opened, "_blank", "noopener");
      } catch (error) { alarm(error.message); }
    };
    if (isPdf) made.push(el("button", { type: "button", click: open }, say("open_page", { page: hit.page })));
    made.push(el("a", { href: `#/documents/${document_}` }, say("open_document")));
  }
  return made.flatMap((one) => [one, " "]);
}

/** Show a hit or a citation: its chunk, with its snippet marked. */
export async function openSource(hit) {
  from = document.activeElement;
  const panel = byId("source");
  byId("source-place").textContent = [hit.title, hit.section, hit.page ? `p. ${hit.page}` : "", hit.chunk_id].filter(Boolean).join(" › ");
  byId("source-links").replaceChildren(...links(hit));
  byId("source-text").replaceChildren(el("div", { class: "text" }, hit.snippet ?? ""));
  for (const side of ["before", "after"]) byId(`source-${side}`).hidden = true;
  panel.hidden = false;
  byId("source-heading").focus();
  if (!hit.chunk_id) return;
  try {
    const found = await call("GET", address(hit.chunk_id));
    const chunk = found.chunks[0];
    [first, last] = [chunk.chunk_id, chunk.chunk_id];
    byId("source-text").replaceChildren(block(chunk, hit.snippet));
    for (const side of ["before", "after"]) byId(`source-${side}`).hidden = false;
    panel.querySelector("mark")?.scrollIntoView({ block: "nearest" });
  } catch (error) {
    // A saved citation outlives its document: its snippet stays on view.
    if (error.status !== 404) alarm(error.message);
  }
}

export function closeSource() {
  byId("source").hidden = true;
  from?.focus();
}

export function prepareSources() {
  byId("source-close").addEventListener("click", closeSource);
  for (const side of ["before", "after"]) {
    byId(`source-${side}`).addEventListener("click", () => neighbours(side).catch((error) => alarm(error.message)));
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !byId("source").hidden) closeSource();
  });
}
