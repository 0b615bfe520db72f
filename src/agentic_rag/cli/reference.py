"""The reference pages of the documentation, written from the code so that they cannot drift.

`python -m agentic_rag.cli.reference docs` writes docs/cli.md, and the tables of settings in
docs/configuration.md; a test compares them with the code.
"""

import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from agentic_rag.cli import exit_codes
from agentic_rag.cli.app import app

MADE = "<!-- Written by `make docs` from the code; change the code instead. -->\n"
BEGIN, END = "<!-- settings: written by `make docs` -->\n", "<!-- end of settings -->\n"


def pages(folder: Path) -> dict[str, str]:
    """File name -> Markdown, for every page that is written from the code.

    `folder` holds the pages as they are; configuration.md keeps what stands around its tables.
    """
    configuration = (folder / "configuration.md").read_text(encoding="utf-8")
    before, rest = configuration.split(BEGIN)
    after = rest.split(END)[1]
    return {
        "cli.md": cli_page(),
        "configuration.md": f"{before}{BEGIN}\n{settings_tables()}\n{END}{after}",
    }


def cli_page() -> str:
    """Every command with its arguments and options, in the order of `arag --help`."""
    root = typer.main.get_command(app)
    parts = [
        "# Command line\n",
        MADE,
        "Every command prints its results on standard output and everything else (progress, "
        "notes, errors) on standard error. `arag COMMAND --help` shows what stands here.\n",
        "Options of every command: `--kb DIR` may stand before or after the command's name. "
        "`--json` prints one JSON object. [Exit codes](#exit-codes) tell scripts what "
        "happened.\n",
    ]
    parts += [
        "## Options of arag itself\n",
        _parameters(root.get_params(typer.Context(root, **root.context_settings))),
    ]
    parts += _command("arag", root, level=2)
    parts += ["## Exit codes\n", "| code | meaning |\n|---|---|"]
    parts += [f"| {code} | {_cell(text)} |" for code, text in exit_codes.MEANINGS.items()]
    parts.append("")
    return "\n".join(parts)


def _command(name: str, command: Any, level: int) -> Iterator[str]:
    children = getattr(command, "commands", {})
    if name != "arag":
        yield f"{'#' * level} {name}\n"
        yield f"{inspect.cleandoc(command.help or '')}\n"
        if not children:
            arguments = [p for p in command.params if p.param_type_name == "argument"]
            usage = " ".join(_usage(argument) for argument in arguments)
            yield f"```console\n$ {name} {usage + ' ' if usage else ''}[OPTIONS]\n```\n"
            yield _parameters(command.params)
    for child_name, child in children.items():
        yield from _command(f"{name} {child_name}", child, level + (name != "arag"))


def _usage(argument: Any) -> str:
    shown = (argument.metavar or argument.name).upper() + ("…" if argument.nargs == -1 else "")
    return shown if argument.required else f"[{shown}]"


def _parameters(parameters: list[Any]) -> str:
    rows = ["| | |", "|---|---|"]
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            name = f"`{parameter.metavar or parameter.name.upper()}`"
        else:
            name = ", ".join(f"`{form}`" for form in sorted(parameter.opts, key=len))
            if not getattr(parameter, "is_flag", False):
                name += f" `{parameter.metavar or parameter.name.upper()}`"
        text = parameter.help or ""
        default = parameter.default
        if default not in (None, False, (), []) and not callable(default):
            text += f" Default: `{default}`."
        rows.append(f"| {name} | {_cell(text)} |")
    return "\n".join(rows) + "\n"


def settings_tables() -> str:
    """Every setting with its type, default and environment variable."""
    from agentic_rag.config import Settings

    fields = Settings.model_fields
    top = {name: field for name, field in fields.items() if not _section(field.annotation)}
    parts = ["### Top level\n", _settings_table(top, ""), ""]
    for name, field in fields.items():
        section = _section(field.annotation)
        if section:
            parts += [f"### [{name}]\n", f"{inspect.cleandoc(section.__doc__ or '')}\n"]
            parts += [_settings_table(section.model_fields, f"{name}."), ""]
    return "\n".join(parts)


def _section(annotation: Any) -> type[BaseModel] | None:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation if is_model else None


def _settings_table(fields: Mapping[str, Any], prefix: str) -> str:
    rows = ["| setting | type | default | environment | meaning |", "|---|---|---|---|---|"]
    for name, field in fields.items():
        kind = inspect.formatannotation(field.annotation).replace("typing.", "")
        kind = kind.replace("pathlib.", "").replace("Path", "path")
        variable = f"ARAG_{prefix}{name}".upper().replace(".", "__")
        cells = (
            f"`{name}`",
            _cell(kind),
            _toml(field.default),
            f"`{variable}`",
            MEANING[prefix + name],
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _toml(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str | Path):
        return f'`"{value}"`'
    if isinstance(value, tuple):
        return f"`{list(value)}`"
    return f"`{value}`"


MEANING = {
    "kb": "Where the knowledge base is: a folder.",
    "strategy": (
        "How a question is answered: `agent`, `workflow`, `pipeline` or `naive`. Empty: `agent` "
        "where the chat model can "
        "call tools, else `naive`."
    ),
    "model": (
        "The chat model: `openai:NAME`, `anthropic:NAME`, `local`, `local:/path/to.gguf`, or "
        "`none`. Empty: chosen for you, see below."
    ),
    "base_url": "The address of an OpenAI-compatible server.",
    "api_key_env": "The *name* of the environment variable that holds the key.",
    "temperature": "Of the chat model, 0 to 2. Not set: the model's own default.",
    "max_output_tokens": "The longest answer, in the model's tokens.",
    "context_tokens": (
        "The most tokens that one request may hold. Not set: what Ollama says of its models, 4,096 "
        "where it says nothing; other models are not limited."
    ),
    "model_timeout": "Seconds to wait for the chat model.",
    "chunking.profile": (
        "`manual`: the size and overlap that suit technical manuals, 1,024 and 200, where they are "
        "not set."
    ),
    "chunking.size": "The longest chunk, in o200k tokens.",
    "chunking.overlap_tokens": (
        "How much of a chunk's end the next one repeats, in tokens; less than `size`."
    ),
    "chunking.overlap_sentences": "The same, in whole sentences.",
    "embedding.model": (
        "What turns sentences into vectors: `local`, `openai:NAME` and others, see below."
    ),
    "embedding.base_url": "The address of the embedding server, where it is not the provider's.",
    "embedding.api_key_env": (
        "The *name* of the environment variable that holds its key. Empty: the provider's usual "
        "one, and none with `base_url`."
    ),
    "embedding.dimensions": "Ask for shorter vectors, of models that can shorten theirs.",
    "embedding.query_prompt": (
        "What is put before a query. Not set: what the model asks for. In arag.toml it can be "
        "empty."
    ),
    "embedding.passage_prompt": (
        "The same before a sentence that is indexed. Recorded with the model."
    ),
    "embedding.batch_size": (
        "Sentences given to it at once. A server that takes fewer is given fewer."
    ),
    "embedding.concurrency": "Requests to an embedding server at the same time.",
    "embedding.timeout": "Seconds to wait for its answer to one request.",
    "embedding.query_timeout": (
        "Seconds to wait for the vector of a query, before BM25 answers alone."
    ),
    "embedding.patience": (
        "Seconds for which a server that is busy or down is asked again, before indexing ends. "
        "What was done is kept."
    ),
    "embedding.with_heading": "Put title and section before a sentence when it is embedded.",
    "search.top_k": "How many hits a search returns, 1 to 1000.",
    "search.pool": "Candidates that each route of the hybrid search gives, whatever k is.",
    "search.fusion": "How the two routes are put together: `scaled` scores, or `rrf` ranks.",
    "search.semantic_weight": "The share of the semantic route.",
    "search.bm25_weight": "The share of the BM25 route.",
    "search.rrf_k": "The constant of reciprocal rank fusion (Cormack et al. 2009).",
    "answer.passages": "How many passages the model is given.",
    "answer.passage_tokens": "The most o200k tokens they may take together.",
    "agent.max_steps": "Turns in which the model may call a tool; one more gives the answer.",
    "agent.token_budget": (
        "The most o200k tokens that one request may hold, with room for the answer kept free."
    ),
    "agent.max_cost": "US dollars that one question may cost, where the model's price is known.",
    "agent.effort": "How hard a reasoning model thinks. Not set: the model's own default.",
    "agent.tools": "The tools the agent is given; without `read_chunk` its searches show whole "
    "chunks.",
    "agent.calls_per_turn": "Tool calls of one turn that are run; further ones are turned down.",
    "agent.streaming": (
        "Ask for replies piece by piece. Off: for servers that cannot stream tool calls."
    ),
    "agent.result_tokens": "The most o200k tokens of one tool result, with `agent.cap`.",
    "agent.short_chunk_tokens": (
        "A chunk of so many o200k tokens or fewer is given whole, with `agent.whole_short_chunks`."
    ),
    "agent.labels": "Each hit begins with title, section and page, not with its id alone.",
    "agent.whole_short_chunks": "A short chunk is given whole by a search and counts as read.",
    "agent.mark_repeats": (
        "A sentence or a search seen before in this question is not sent again: a mark says where "
        "it was."
    ),
    "agent.fold_equal": "Chunks of equal text are one line with their ids.",
    "agent.cap": "A tool result is cut at `agent.result_tokens`, and says how much more there is.",
    "index.exclude": "Patterns to leave out, written as in .gitignore. In the environment as JSON.",
    "index.max_file_mb": "Larger files are reported and not read.",
    "index.batch_mb": "A commit is made when this much has been read,",
    "index.batch_seconds": "or when this many seconds have passed.",
    "ocr.enabled": "Read scanned pages and pictures, where the ocr extra is installed.",
    "ocr.min_confidence": "Lines that OCR is less sure of, 0 to 1, are left out and reported.",
    "ocr.dpi": "How finely a scanned page is rendered, in dots an inch.",
    "images.read": "Read the figures inside documents; needs the ocr extra.",
    "images.rules": (
        "A file of rules for which figures are kept, in place of those that come with the program."
    ),
    "images.most": "So many figures of one document are read; more are reported.",
    "images.min_side": "Pictures of fewer pixels in height or width are icons and not read.",
    "images.describe": (
        "A model that describes the figures kept, named as `model` is; it must see pictures. "
        "Empty: none."
    ),
    "images.base_url": "The address of its OpenAI-compatible server.",
    "images.api_key_env": "The *name* of the environment variable that holds its key.",
    "images.timeout": "Seconds to wait for one description.",
    "rerank.model": (
        "What orders anew what was found: `sentence-transformers:NAME_OR_PATH`, "
        "`layerwise:NAME_OR_PATH`, `http:MODEL` for any `/rerank` server, or `chat` for the chat "
        "model. Empty: nothing."
    ),
    "rerank.base_url": "The address of the `/rerank` server, without `/rerank`.",
    "rerank.api_key_env": "The *name* of the environment variable that holds its key.",
    "rerank.candidates": "How many passages it is given.",
    "rerank.batch_size": "How many at once.",
    "rerank.timeout": "Seconds to wait for it.",
    "rerank.layer": "The layer at which a `layerwise:` reranker is cut: [Reranking](reranking.md).",
    "rerank.early_layer": "The layer at which it can be left early.",
    "rerank.exit": (
        "When it is: `off`, never; `maximum`, when the softmax over the first batch reaches the "
        "threshold; `entropy`, when the entropy of that softmax is no more than it."
    ),
    "rerank.exit_threshold": "That threshold, for `maximum` and `entropy` 0 to 1.",
    "rerank.max_tokens": "The longest query and text together, in that reranker's tokens.",
    "pipeline.expansion": (
        "What is searched for beside the question: `keywords` by the model, `hyde` (a hypothetical "
        "answer), `both`, or `none`."
    ),
    "pipeline.hyde_alone": "The hypothetical answer takes the question's place.",
    "pipeline.hyde_with_text": "It is written with the best chunk by words in view.",
    "pipeline.sparse": "Candidates by words.",
    "pipeline.paths": "Candidates by the words of titles, folders and headings alone.",
    "pipeline.dense": "Candidates by vectors.",
    "pipeline.passages": "How many passages the model is given.",
    "pipeline.fusion": (
        "How the routes come together: `rrf` of the reranked routes, `merged` before reranking, or "
        "an answer for each, of which the `longer` is kept or both are `joined`."
    ),
    "pipeline.prompt": (
        "The form of the prompt: `plain`, itemised `markdown`, `thoughts` first, or `focused` on "
        "the best passage."
    ),
    "pipeline.refine": "Complete the answer from the best passage, in one more request.",
    "pipeline.compression": "Keep of each passage the sentences the question asks for: `bm25`.",
    "pipeline.compression_rate": "The part of a passage's tokens that is kept.",
    "workflow.rewrite": "How a question is prepared: by the `model`, or by `rules` alone.",
    "workflow.rewrite_model": "Another chat model for that, a small one. Empty: the same.",
    "workflow.variants": "How many other wordings are searched for too.",
    "workflow.main_query_weight": "How much more than another wording the main query counts.",
    "workflow.threshold": "The score, of 40, from which the documents suffice.",
    "workflow.rounds": "Rounds in the documents, with what the judge suggests, before the web.",
    "workflow.profile": "How an answer is laid out: `general`, `legal`, or the path of a template.",
    "workflow.authority": "Which sources go before the others, the first deciding.",
    "workflow.bm25_k1": "BM25: how soon another occurrence of a word counts less.",
    "workflow.bm25_b": "BM25: how much the length of a chunk counts, 0 to 1.",
    "workflow.temperature": "Of every stage, unless `temperature` is set.",
    "workflow.top_p": "The same.",
    "workflow.rewrite_temperature": "Of the first stage, where it is to differ.",
    "workflow.evaluate_temperature": "Of the evaluation.",
    "workflow.answer_temperature": "Of the answer.",
    "workflow.rewrite_top_p": "Of the first stage.",
    "workflow.evaluate_top_p": "Of the evaluation.",
    "workflow.answer_top_p": "Of the answer.",
    "workflow.rewrite_tokens": "The longest reply of the first stage, in the model's tokens.",
    "workflow.evaluate_tokens": "The longest evaluation.",
    "workflow.answer_tokens": "The longest answer.",
    "web.allow_private": "Whether URLs may lead to this machine or to private networks.",
    "web.timeout": "Seconds that fetching a page may take.",
    "web_search.provider": (
        "`serpapi`, `tavily`, `searxng`, or `none`. Empty: SearXNG where `url` is set, else the "
        "one whose key is at hand, else none."
    ),
    "web_search.url": "The address of your SearXNG, or one in place of the provider's own.",
    "web_search.api_key_env": (
        "The *name* of the environment variable that holds the key. Empty: `SERPAPI_API_KEY` or "
        "`TAVILY_API_KEY`."
    ),
    "web_search.results": "How many results are taken, 1 to 20.",
    "web_search.location": (
        "Where SerpAPI searches from. Empty: China for a Chinese question, else United States."
    ),
    "web_search.hl": "Google's or SearXNG's language. Empty: by the question's.",
    "web_search.gl": "The country of Google that SerpAPI asks. Empty: `cn` or `us`.",
    "web_search.read_pages": "Fetch the pages and use their text. Off: only the results' snippets.",
    "web_search.page_tokens": "The most o200k tokens of one page,",
    "web_search.total_tokens": "and of all of them together.",
    "web_search.timeout": "Seconds for a search, and for each page.",
    "evaluation.judge_model": "The chat model that judges answers, named as `model` is; empty: "
    "none, and no accuracy by a judge.",
    "evaluation.judge_base_url": "Where its server is, as `base_url`.",
    "evaluation.judge_api_key_env": "The environment variable that holds its key.",
    "evaluation.workers": "Questions answered at a time.",
    "evaluation.requests_per_minute": "Requests to the chat model in a minute, of all workers "
    "together.",
    "evaluation.max_cost": "What a whole run may spend, in US dollars, where prices are known.",
    "server.host": "Where `arag serve` listens; anything but loopback needs a token.",
    "server.port": "On which port; 0 takes a free one.",
    "server.token_env": "The environment variable that holds the bearer token.",
    "server.allow_origins": "Origins whose pages may call the server (CORS), as in "
    '`["https://wiki.example"]`; none: closed.',
    "server.concurrent_questions": "Questions answered at a time.",
    "server.queued_questions": "Questions that may wait; those beyond them are refused with 429.",
    "server.question_timeout": "The longest a question may take, in seconds.",
    "server.max_upload_mb": "The largest file that may be uploaded.",
    "server.max_body_kb": "The largest request that is no upload.",
    "server.mcp_add_documents": "Whether MCP clients may add documents.",
    "server.mcp_language": "The language of what MCP clients are told: `en` or `zh`; a call in the "
    "other one is answered in that.",
}


if __name__ == "__main__":
    docs = Path(sys.argv[1])
    for file, text in pages(docs).items():
        (docs / file).write_text(text, encoding="utf-8")
