"""Tokens that the agent's tools bring in, with each point of the display on and off.

`python benchmarks/agent_tokens.py` plays one fixed policy for every question of musique, without
a model: search by meaning for the question, read the two best chunks, search again by keywords
for the names in the question. All points off is A-RAG's own behaviour (arXiv 2602.03442). The
table gives o200k tokens a question, by tool, and what the supporting chunks got for them. The
first run indexes musique with the real embedder (minutes); `--kb` takes one that has it already.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.table import Table

from agentic_rag.config import AgentSettings
from agentic_rag.knowledge_base import KnowledgeBase, Snapshot
from agentic_rag.strategies.agent.tools import TOOLS, Retrieval
from agentic_rag.text.language import is_chinese
from benchmarks.places import default_settings, parser, say
from benchmarks.quality import opened, there_already
from benchmarks.timing import print_table

POINTS = ("labels", "whole_short_chunks", "mark_repeats", "fold_equal", "cap")
_NAME = re.compile(r"(?<!^)\b[A-Z][\w'’-]*(?:\s+(?:of\s+)?[A-Z][\w'’-]*){0,2}")
_LONGEST_WORDS = 2  # the keywords of a question without a name
_READ = 2


@dataclass(frozen=True, slots=True)
class Played:
    """One question: tokens by tool, and the share of its supporting chunks that were shown at
    all, and whole."""

    tokens: Mapping[str, int]
    shown: float
    whole: float


def names_in(question: str) -> list[str]:
    """The names in a question, of up to three words; its longest words where it has none."""
    found = [re.sub(r"['’]s$", "", name) for name in _NAME.findall(question)]
    plain = sorted(re.findall(r"[a-z]{4,}", question), key=len, reverse=True)
    return list(dict.fromkeys(found or plain[:_LONGEST_WORDS]))


def play(snapshot: Snapshot, question: Mapping[str, Any], agent: AgentSettings) -> Played:
    """The fixed policy for one question."""
    settings = default_settings().model_copy(update={"agent": agent})
    asked = question["question"]
    tools = Retrieval(snapshot, settings, "zh" if is_chinese(asked) else "en")
    first = tools.call("semantic_search", {"query": asked})
    tools.call("read_chunk", {"chunk_ids": [hit.chunk_id for hit in first.hits[:_READ]]})
    tools.call("keyword_search", {"keywords": names_in(asked)})
    tracker = tools.tracker
    wanted = set(question["supporting_chunk_ids"])
    shown = {one.hit.source_id for one in tracker.shown.values()}
    whole = {
        one.hit.source_id for one in tracker.shown.values() if one.hit.chunk_id in tracker.read
    }
    return Played(
        dict(tracker.tokens), len(wanted & shown) / len(wanted), len(wanted & whole) / len(wanted)
    )


def displays() -> dict[str, AgentSettings]:
    """The displays to compare, by their names in the table."""
    off = dict.fromkeys(POINTS, False)
    return {
        "all off (A-RAG)": AgentSettings(**off),
        **{f"only {point}": AgentSettings(**{**off, point: True}) for point in POINTS},
        **{f"all but {point}": AgentSettings(**{point: False}) for point in POINTS},
        "all on (default)": AgentSettings(),
    }


def main() -> None:
    arguments = parser("Counts the tokens that the agent's tools bring in.")
    arguments.add_argument("--kb", type=Path, help="a knowledge base of musique that is there")
    options = arguments.parse_args()
    folder = options.data / "musique"
    questions = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    if options.kb:
        kb = there_already(options.kb)
    else:
        kb = opened(options.work.absolute() / "quality" / "musique", folder / "chunks.json")
    print_table(_table(kb, questions))


def _table(kb: KnowledgeBase, questions: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(
        title=f"o200k tokens a question, mean of {len(questions)}; share of supporting chunks",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("display")
    for column in (*TOOLS, "together", "shown", "whole"):
        table.add_column(column, justify="right")
    snapshot = kb.snapshot()
    for name, agent in displays().items():
        say(name)
        played = [play(snapshot, question, agent) for question in questions]
        tokens = Counter[str]()
        for one in played:
            tokens.update(one.tokens)
        count = len(played)
        table.add_row(
            name,
            *(f"{tokens[tool] / count:.0f}" for tool in TOOLS),
            f"{sum(tokens.values()) / count:.0f}",
            f"{sum(one.shown for one in played) / count:.3f}",
            f"{sum(one.whole for one in played) / count:.3f}",
        )
    return table


if __name__ == "__main__":
    main()
