"""2WikiMultiHopQA (Ho et al. 2020, arXiv 2011.01060), `dev.json`.

Records as in HotpotQA, with `evidences` `[[subject, relation, object], …]` besides, and since
December 2020 `answer_id`, whose other names stand in `id_aliases.json`: a line each `{"Q_id",
"aliases", "demonyms"}`. Those are right answers too, as in the authors' evaluation script 1.1.
"""

from collections.abc import Sequence
from pathlib import Path

from agentic_rag.evaluation.formats.hotpotqa import from_hotpotqa
from agentic_rag.evaluation.formats.prepared import Prepared
from agentic_rag.evaluation.formats.source_file import Entry, read_entries

ALIASES = "id_aliases.json"


def from_two_wiki(entries: Sequence[Entry], aliases: Path | None = None) -> Prepared:
    """Questions and the pooled paragraphs. `aliases` is the file `id_aliases.json`."""
    names: dict[str, tuple[str, ...]] = {}
    for line in read_entries(aliases) if aliases else ():
        names[line.needed("Q_id")] = (*line.texts("aliases"), *line.texts("demonyms"))

    def other_answers(entry: Entry) -> tuple[str, ...]:
        answer = entry.text("answer")
        given = names.get(entry.text("answer_id"), ())
        return tuple(dict.fromkeys(name for name in given if name != answer))

    return from_hotpotqa(entries, other_answers)
