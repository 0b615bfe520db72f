"""A dataset as it was published, or a table of one's own, made into one that can be run.

In: the name of a form, or `auto`, and its files. Out: `questions.json` and, where the corpus comes
with it, `chunks.json`, as `evaluation.dataset` loads them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agentic_rag.evaluation.dataset import CHUNKS, QUESTIONS, BadDataset
from agentic_rag.evaluation.formats.arag_form import from_arag_form, read_chunks
from agentic_rag.evaluation.formats.graphrag_bench import from_graphrag_bench
from agentic_rag.evaluation.formats.hotpotqa import from_hotpotqa
from agentic_rag.evaluation.formats.musique import first_answerable, from_musique
from agentic_rag.evaluation.formats.prepared import CorpusChunk, Prepared
from agentic_rag.evaluation.formats.source_file import Entry, entries_of, read_entries, read_text
from agentic_rag.evaluation.formats.table import columns_of, from_table
from agentic_rag.evaluation.formats.two_wiki import ALIASES, from_two_wiki
from agentic_rag.evaluation.records import GoldQuestion

AUTO = "auto"
_CHUNK_TOKENS = 1_000  # A-RAG, about 1,000


@dataclass(frozen=True, slots=True)
class Files:
    """What is to be made: the file of the questions, the file of the corpus where one was named,
    how many questions at most, and how long a chunk is where a text must be cut (o200k tokens)."""

    questions: Path
    corpus: Path | None = None
    limit: int | None = None
    chunk_tokens: int = _CHUNK_TOKENS


@dataclass(frozen=True, slots=True)
class Read:
    """A dataset as it was read, and the name of its form."""

    form: str
    prepared: Prepared


def _arag(files: Files) -> Prepared:
    beside = files.questions.with_name(CHUNKS)
    corpus = files.corpus or (beside if beside.is_file() else None)
    return from_arag_form(read_entries(files.questions), corpus)


def _hotpotqa(files: Files) -> Prepared:
    _no_corpus(files, "HotpotQA's paragraphs come with the questions")
    return from_hotpotqa(read_entries(files.questions)[: files.limit])


def _musique(files: Files) -> Prepared:
    _no_corpus(files, "MuSiQue's paragraphs come with the questions")
    return from_musique(first_answerable(read_entries(files.questions), files.limit))


def _two_wiki(files: Files) -> Prepared:
    """The second file is the one with the other names of answers."""
    beside = files.questions.with_name(ALIASES)
    aliases = files.corpus or (beside if beside.is_file() else None)
    return from_two_wiki(read_entries(files.questions)[: files.limit], aliases)


def _graphrag_bench(files: Files) -> Prepared:
    return from_graphrag_bench(read_entries(files.questions), files.corpus, files.chunk_tokens)


def _table(files: Files) -> Prepared:
    table = from_table(files.questions)
    if files.corpus is None:
        return table
    chunks, notes = read_chunks(files.corpus)
    return replace(table, chunks=chunks, notes=(*table.notes, *notes))


def _no_corpus(files: Files, why: str) -> None:
    if files.corpus is not None:
        raise BadDataset(f"{why}; leave {files.corpus} out.")


FORMS: Mapping[str, Callable[[Files], Prepared]] = {
    "arag": _arag,
    "hotpotqa": _hotpotqa,
    "musique": _musique,
    "2wiki": _two_wiki,
    "graphrag-bench": _graphrag_bench,
    "csv": _table,
    "tsv": _table,
    "jsonl": _table,
    "json": _table,
}
_OTHER_NAMES = {
    "a-rag": "arag",
    "hotpot": "hotpotqa",
    "2wikimultihopqa": "2wiki",
    "2wikimultihop": "2wiki",
    "graphragbench": "graphrag-bench",
    "graphrag": "graphrag-bench",
    "table": "csv",
}


def read_form(form: str, files: Files) -> Read:
    """The dataset of `files` in the form of this name; of `auto`, as its records look.

    With a limit the first questions only; of paragraphs that come with questions, only theirs.
    Raises `BadDataset` with one sentence.
    """
    name = form.strip().lower().replace("_", "-")
    name = _OTHER_NAMES.get(name, name)
    if files.questions.is_dir() and (files.questions / QUESTIONS).is_file():
        files = replace(files, questions=files.questions / QUESTIONS)
    if name == AUTO:
        name = form_of(files.questions)
    if name not in FORMS:
        raise BadDataset(f"There is no form {form!r}; name one of {AUTO}, {', '.join(FORMS)}.")
    prepared = FORMS[name](files)
    if not prepared.questions:
        raise BadDataset(f"{files.questions} holds no question that can be asked.")
    return Read(name, replace(prepared, questions=prepared.questions[: files.limit]))


def form_of(path: Path) -> str:
    """The form that the first record of a file has. Raises `BadDataset` where it has none."""
    text = read_text(path)
    if text.lstrip()[:1] not in ("{", "["):
        return "tsv" if path.suffix.lower() in (".tsv", ".tab") else "csv"
    keys = _keys(entries_of(text, path)[0])
    if {"paragraphs", "question"} <= keys:
        return "musique"
    if {"context", "question"} <= keys:
        return "2wiki" if keys & {"evidences", "entity_ids", "answer_id"} else "hotpotqa"
    if {"question_type", "source", "question"} <= keys:
        return "graphrag-bench"
    if "question" in keys and (
        keys & {"qid", "supporting_chunk_ids", "answer_aliases"} or path.with_name(CHUNKS).is_file()
    ):
        return "arag"
    if "question" in columns_of(keys):
        return "jsonl" if path.suffix.lower() == ".jsonl" else "json"
    raise BadDataset(
        f"{path} is of no form that can be told by its records, whose keys are: "
        f"{', '.join(sorted(keys))[:200]}; name the form: {', '.join(FORMS)}."
    )


def _keys(entry: Entry) -> frozenset[str]:
    return frozenset(str(key) for key in entry.fields)


def refuse_to_overwrite(directory: Path) -> None:
    """Raise `BadDataset` where there is a dataset in `directory` already."""
    for path in (directory / QUESTIONS, directory / CHUNKS):
        if path.exists():
            raise BadDataset(f"{path} is there already; --force overwrites it.")


def write_dataset(prepared: Prepared, directory: Path, *, overwrite: bool = False) -> None:
    """`questions.json` and `chunks.json` in `directory`, which is made where it is not there.

    Each file is replaced whole. A `chunks.json` that was there is removed where the new dataset
    has none. Raises `BadDataset` where there are such files already, unless `overwrite`.
    """
    if not overwrite:
        refuse_to_overwrite(directory)
    questions, chunks = directory / QUESTIONS, directory / CHUNKS
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # The questions last: without them there is no dataset.
        if prepared.chunks is None:
            chunks.unlink(missing_ok=True)
        else:
            _write_list(chunks, [_chunk_record(chunk) for chunk in prepared.chunks])
        _write_list(questions, [_question_record(question) for question in prepared.questions])
    except (FileExistsError, NotADirectoryError):
        raise BadDataset(f"{directory} is no folder; name another one.") from None
    except OSError as error:
        raise BadDataset(f"{directory} cannot be written to ({error.strerror}).") from None


def _question_record(question: GoldQuestion) -> dict[str, object]:
    return {
        "qid": question.qid,
        "question": question.question,
        "answer": question.answer,
        "answer_aliases": list(question.aliases),
        "type": question.kind,
        "supporting_chunk_ids": list(question.supporting),
    }


def _chunk_record(chunk: CorpusChunk) -> dict[str, object]:
    title = {"title": chunk.title} if chunk.title else {}
    return {"id": chunk.chunk_id, **title, "text": chunk.text, **chunk.more}


def _write_list(path: Path, records: Sequence[dict[str, object]]) -> None:
    """The records as a JSON list of one a line."""
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    draft = path.with_suffix(".tmp")
    try:
        draft.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
