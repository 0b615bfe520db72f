// The list of questions: filters, and what became of each in each system.

const LISTING = JSON.parse(byId("listing").textContent);
const QUESTIONS = LISTING.questions.map((question) => ({ ...question, answers: [] }));
for (const answer of LISTING.answers) QUESTIONS[answer.question].answers.push(answer);

const FILTERS = ["search", "in-traces", "result", "error", "system", "kind"].map(byId);
const PAUSE = 120; // milliseconds between the last key and the search

/** "right", "wrong", "unknown", or that it failed or was not answered. */
const state = (answer) => (answer.outcome !== "answered" ? answer.outcome : answer.right === null ? "unknown" : answer.right ? "right" : "wrong");
const stateWord = (answer) => say(answer.outcome === "answered" ? state(answer) : `outcome_${answer.outcome}`);

for (const question of QUESTIONS) {
  const texts = question.answers.flatMap((answer) => [answer.text, answer.error]);
  question.searched = [question.qid, question.text, ...question.golds, ...texts].join("\n").toLowerCase();
}

/** Whether a trace holds the words; in its JSON some characters are written otherwise. */
function inTraces(question, needle) {
  const escaped = JSON.stringify(needle).slice(1, -1).replaceAll("<", "\\u003c");
  return question.answers.some((answer) => byId(`trace-${answer.question}-${answer.system}`)?.textContent.toLowerCase().includes(escaped));
}

const FITS = {
  right: (answer) => answer.right === true,
  wrong: (answer) => answer.right === false || answer.outcome === "failed",
  unknown: (answer) => state(answer) === "unknown",
  failed: (answer) => answer.outcome === "failed",
  unanswered: (answer) => answer.outcome === "unanswered",
};

function fits(question, wanted) {
  if (wanted.kind && question.kind !== wanted.kind) return false;
  if (wanted.needle && !question.searched.includes(wanted.needle) && !(wanted.inTraces && inTraces(question, wanted.needle))) return false;
  const differs = wanted.result === "differs";
  if (differs && !(question.answers.some(FITS.right) && question.answers.some(FITS.wrong))) return false;
  if (!wanted.system && !wanted.error && (differs || !wanted.result)) return true;
  return question.answers.some((answer) =>
    (!wanted.system || answer.system === Number(wanted.system)) &&
    (!wanted.error || answer.error_kind === wanted.error) &&
    (differs || !wanted.result || FITS[wanted.result](answer)));
}

function refine() {
  const [search, traces, result, error, system, kind] = FILTERS;
  const wanted = { needle: search.value.trim().toLowerCase(), inTraces: traces.checked, result: result.value, error: error.value, system: system.value, kind: kind.value };
  let shown = 0;
  for (const question of QUESTIONS) {
    question.box.hidden = !fits(question, wanted);
    shown += question.box.hidden ? 0 : 1;
  }
  byId("count").textContent = shown || !QUESTIONS.length ? say("shown", { shown: count(shown), all: count(QUESTIONS.length) }) : say("none_fit");
}

function chip(answer) {
  const why = answer.error_kind && answer.error_kind !== "failed" ? `: ${say(`error_${answer.error_kind}`)}` : "";
  const name = LISTING.systems.length > 1 ? `${LISTING.systems[answer.system]} · ` : "";
  return el("span", { class: `chip ${state(answer)}`, title: `${name}${stateWord(answer)}${why}` }, `${name}${stateWord(answer)}`);
}

function facts(answer) {
  const told = [
    answer.error_kind ? say(`error_${answer.error_kind}`) : "",
    answer.f1 === null ? "" : `F1 ${(100 * answer.f1).toFixed(0)} %`,
    answer.steps === null ? "" : say("step_count", { count: answer.steps }),
    ...[["retrieved_tokens", "tokens_retrieved"], ["input_tokens", "tokens_in"], ["output_tokens", "tokens_out"]]
      .map(([name, key]) => (answer[name] ? `${count(answer[name])} ${say(key)}` : "")),
    answer.cost ? `$${answer.cost.toFixed(4)}` : "",
    answer.seconds === null ? "" : `${answer.seconds.toFixed(2)} ${say("seconds")}`,
    answer.tries > 1 ? say("tries", { count: answer.tries }) : "",
  ];
  return el("p", { class: "facts hint" }, ...told.filter(Boolean).map((one) => el("span", {}, one)));
}

function answerBox(answer, question) {
  return el("section", { class: "answer" },
    el("h3", {}, `${LISTING.systems[answer.system]} `, el("span", { class: `chip ${state(answer)}` }, stateWord(answer))),
    facts(answer),
    answer.error ? el("p", { class: "error" }, answer.error) : null,
    answer.text ? el("p", { class: "said" }, answer.text) : el("p", { class: "hint" }, say("no_answer")),
    ...traceParts(`${answer.question}-${answer.system}`, question.golds));
}

/** What is inside a question, made when it is opened. */
function fill(question) {
  const about = [question.qid, question.kind, question.dataset].filter(Boolean).join(" · ");
  const missing = LISTING.systems.filter((name, at) => !question.answers.some((answer) => answer.system === at));
  question.inside.replaceChildren(
    el("p", { class: "hint" }, about),
    el("h4", {}, say("gold_answer")),
    el("p", { class: "said" }, question.golds.join(" | ") || say("no_gold")),
    missing.length ? el("p", { class: "hint" }, `${missing.join(", ")}: ${say("no_result")}`) : "",
    el("div", { class: "answers" }, ...question.answers.map((answer) => answerBox(answer, question))));
}

function questionBox(question, number) {
  question.chips = el("span", { class: "chips" });
  question.inside = el("div", { class: "body" });
  const box = el("details", { class: "question", id: `q${number + 1}` },
    el("summary", {}, el("span", { class: "ask" }, question.text), question.chips), question.inside);
  box.addEventListener("toggle", () => {
    if (box.open) fill(question);
    else question.inside.replaceChildren(); // a trace may be large
  });
  return box;
}

/** Everything that has words in it, in the reader's language. */
function show() {
  translate();
  for (const question of QUESTIONS) {
    question.chips.replaceChildren(...question.answers.map(chip));
    if (question.box.open) fill(question);
  }
  refine();
}

/** Open the question that the address names, as in report.html#q12. */
function openNamed() {
  const box = /^#q\d+$/.test(location.hash) ? byId(location.hash.slice(1)) : null;
  if (!box) return;
  box.hidden = false;
  box.open = true;
  box.scrollIntoView();
}

QUESTIONS.forEach((question, number) => { question.box = questionBox(question, number); });
byId("questions").append(...QUESTIONS.map((question) => question.box));
let waiting = 0;
for (const one of FILTERS) {
  one.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(refine, PAUSE); });
}
byId("clear").addEventListener("click", () => {
  for (const one of FILTERS) { if (one.type === "checkbox") one.checked = false; else one.value = ""; }
  refine();
});
byId("language").addEventListener("click", () => { language = language === "en" ? "zh" : "en"; show(); });
byId("theme").addEventListener("click", turnTheme);
addEventListener("hashchange", openNamed);
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  event.preventDefault();
  byId("search").focus();
});
show();
openNamed();
document.documentElement.dataset.ready = "yes";
