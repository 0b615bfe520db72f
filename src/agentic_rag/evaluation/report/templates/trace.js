// One answer's trace: its steps and tool calls, each foldable, with gold and cited chunks marked.

const badge = (kind) => el("span", { class: `badge ${kind}` }, say(kind));

/** What a trace marks: chunks by id, and the words of the gold answer. */
class Marks {
  constructor(trace, golds) {
    this.gold = new Set(trace.gold_chunks);
    this.cited = new Set(trace.cited_chunks);
    this.golds = golds.filter((gold) => gold.length > 1).map((gold) => gold.toLowerCase());
  }

  badges(id) {
    return [this.gold.has(id) ? badge("gold") : null, this.cited.has(id) ? badge("cited") : null];
  }

  /** Text as nodes, with the words of the gold answer marked. */
  words(text) {
    const lower = text.toLowerCase();
    if (lower.length !== text.length) return [text]; // places would not be the same
    const nodes = [];
    let from = 0;
    while (from < text.length) {
      let [at, length] = [-1, 0];
      for (const gold of this.golds) {
        const found = lower.indexOf(gold, from);
        if (found >= 0 && (at < 0 || found < at)) [at, length] = [found, gold.length];
      }
      if (at < 0) break;
      nodes.push(text.slice(from, at), el("mark", { class: "words" }, text.slice(at, at + length)));
      from = at + length;
    }
    return [...nodes, text.slice(from)];
  }

  /** Text as nodes, with also the heads `[12-3]` of gold and cited chunks marked. */
  passages(text) {
    return text.split(/(\[\d+-\d+\])/).flatMap((part, at) => {
      if (at % 2 === 0) return this.words(part);
      const id = part.slice(1, -1);
      const kinds = ["gold", "cited"].filter((kind) => this[kind].has(id));
      return kinds.length ? [el("mark", { class: kinds[0] }, part), ...kinds.flatMap((kind) => [" ", badge(kind)])] : [part];
    });
  }
}

const LINE = 100; // characters of JSON that stand on one line

function written(value) {
  if (typeof value === "string") return value;
  const line = JSON.stringify(value);
  return line.length > LINE ? JSON.stringify(value, null, 1) : line;
}
const isEmpty = (value) => value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);

function short(value, limit = 120) {
  if (isEmpty(value)) return "";
  const text = typeof value === "string" ? value : Object.values(value).map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(", ");
  const line = text.replace(/\s+/g, " ");
  return line.length > limit ? `${line.slice(0, limit)}…` : line;
}

/** Of a step's input what tells it from others: its texts, without the model's name and tools. */
const about = ({ model, tools, ...rest }) => Object.values(rest).flat().filter((one) => typeof one === "string");

const placeOf = (found) => [found.title || found.uri, found.section, found.page ? say("page", { page: found.page }) : "", found.source_id ?? ""].filter(Boolean).join(" · ");

function hitLine(hit, marks) {
  const id = hit.chunk_id || hit.uri;
  return el("li", { class: "hit" },
    el("code", {}, id), " ", ...marks.badges(id), " ", placeOf(hit), hit.score === undefined ? null : el("small", {}, ` ${hit.score.toFixed(3)}`),
    el("span", { class: "snippet" }, ...marks.words(hit.snippet)));
}

/** A part with a heading; none where there is nothing. */
function part(key, value, show) {
  return isEmpty(value) || value === "" ? [] : [el("h4", {}, say(key)), show(value)];
}

const figures = (event) => [
  event.hits?.length ? say("hit_count", { count: event.hits.length }) : "",
  ...[["input_tokens", "tokens_in"], ["output_tokens", "tokens_out"], ["retrieved_tokens", "tokens_retrieved"]]
    .map(([name, key]) => (event[name] ? `${count(event[name])} ${say(key)}` : "")),
  event.duration ? `${event.duration.toFixed(2)} ${say("seconds")}` : "",
].filter(Boolean).join(" · ");

/** A foldable event whose inside is made when it is first opened. */
function folded(kind, name, about, end, inside) {
  const box = el("details", { class: `event ${kind}${end?.error ? " fault" : ""}` },
    el("summary", {}, el("strong", {}, name), about ? " " : null, about ? el("code", {}, about) : null, end ? el("small", {}, ` ${figures(end)}`) : null));
  box.fill = () => {
    if (box.filled) return;
    box.filled = true;
    box.append(el("div", { class: "inside" }, ...inside()));
  };
  box.addEventListener("toggle", () => { if (box.open) box.fill(); });
  return box;
}

const pre = (nodes) => el("pre", { tabindex: "0" }, ...nodes);
const hitList = (hits, marks) => el("ol", {}, ...hits.map((hit) => hitLine(hit, marks)));
const errorOf = (event) => (event?.error ? [el("p", { class: "error" }, event.error)] : []);

function stepBox(start, end, marks) {
  return folded("step", start.name, short(about(start.input)), end, () => [
    ...errorOf(end),
    ...part("input", start.input, (value) => pre(marks.passages(written(value)))),
    ...part("output", end?.output, (value) => pre(marks.passages(written(value)))),
    ...part("hits", end?.hits, (hits) => hitList(hits, marks)),
  ]);
}

function callBox(called, returned, marks) {
  return folded("call", called.name, short(called.arguments), returned, () => [
    ...errorOf(returned),
    ...part("arguments", called.arguments, (value) => pre([written(value)])),
    ...part("returned", returned?.text, (text) => pre(marks.passages(text))),
    ...part("hits", returned?.hits, (hits) => hitList(hits, marks)),
  ]);
}

/** The events of a trace as elements, what belongs to a step below it. */
function eventBoxes(events, marks) {
  const ends = new Map();
  for (const event of events) {
    if (event.type === "step_finished") ends.set(`step ${event.step}`, event);
    if (event.type === "tool_returned") ends.set(`call ${event.call_id}`, event);
  }
  const top = el("div");
  const below = new Map(events.filter((event) => event.type === "step_started").map((event) => [event.step, el("div", { class: "below" })]));
  for (const event of events) {
    const place = below.get(event.type === "step_started" ? event.parent : event.step) ?? top;
    if (event.type === "step_started") place.append(stepBox(event, ends.get(`step ${event.step}`), marks), below.get(event.step));
    else if (event.type === "tool_called") place.append(callBox(event, ends.get(`call ${event.call_id}`), marks));
    else if (event.type === "thought") place.append(folded("thought", say("thought"), short(event.text), null, () => [pre([event.text])]));
    else if (event.type === "notice") place.append(el("p", { class: `note ${event.level}` }, event.message));
    else if (event.type === "run_started" && event.why) place.append(el("p", { class: "note" }, `${event.strategy}, ${event.model}: ${event.why}`));
  }
  return top;
}

/** Unfold or fold every event inside; what is inside one is made first. */
function unfold(place, open) {
  for (const box of place.querySelectorAll(".event")) {
    if (open) box.fill();
    box.open = open;
  }
}

function goldLine(gold) {
  const found = gold.rank === undefined || gold.rank === null ? say("not_found") : say("place", { rank: gold.rank });
  const told = [found, say(gold.read ? "read" : "not_read"), say(gold.cited ? "cited" : "not_cited")];
  return el("li", {}, el("code", {}, gold.id), ` ${told.join(" · ")}`);
}

function sourceLine(source, marks) {
  const id = source.chunk_id || source.uri;
  return el("details", {}, el("summary", {}, `[${source.number}] `, el("code", {}, id), " ", marks.gold.has(id) ? badge("gold") : null, ` ${placeOf(source)}`), pre(marks.words(source.snippet)));
}

/** All that is known of how an answer came about. */
function traceParts(id, golds) {
  const script = byId(`trace-${id}`);
  if (!script) return [el("p", { class: "hint" }, say("no_trace"))];
  const trace = JSON.parse(script.textContent);
  const marks = new Marks(trace, golds);
  const events = eventBoxes(trace.events, marks);
  const buttons = [["open_all", true], ["close_all", false]].map(([key, open]) => {
    const button = el("button", { type: "button" }, say(key));
    button.addEventListener("click", () => unfold(events, open));
    return button;
  });
  return [
    ...part("gold_chunks", trace.gold, (all) => el("ul", {}, ...all.map(goldLine))),
    ...part("sources", trace.citations, (all) => el("div", {}, ...all.map((one) => sourceLine(one, marks)))),
    ...part("unsupported", trace.unsupported, (all) => el("ul", {}, ...all.map((one) => el("li", {}, one)))),
    el("div", { class: "row" }, el("h4", {}, say("trace")), ...buttons),
    events,
  ];
}
