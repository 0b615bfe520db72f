"""A dataset on disk: `questions.json`, and `chunks.json` where the corpus comes with it.

The form is A-RAG's (arXiv 2602.03442); `arag eval prepare` writes it from others.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentic_rag.documents.cleaning import clean_text
from agentic_rag.errors import AragError
from agentic_rag.evaluation.records import GoldQuestion

QUESTIONS = "questions.json"
CHUNKS = "chunks.json"


class BadDataset(AragError):
    """A dataset cannot be used as it is."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Questions in the order of their file. `chunks` is the corpus's file, None where the
    questions are of a knowledge base that there is already; `hash` is of the questions."""

    directory: Path
    questions: tuple[GoldQuestion, ...]
    chunks: Path | None
    hash: str

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.directory.resolve().name


def load_dataset(directory: Path) -> Dataset:
    """The dataset in `directory`. Raises `BadDataset` that names the file and what is wrong."""
    path = directory / QUESTIONS
    if not directory.is_dir():
        raise BadDataset(f"There is no folder {directory}; name one that holds {QUESTIONS}.")
    if not path.is_file():
        raise BadDataset(
            f"There is no {QUESTIONS} in {directory}; `arag eval prepare` makes one of a dataset "
            "as it was published, or of your own questions."
        )
    try:
        content = path.read_bytes()
        records = json.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise BadDataset(f"{path} cannot be read ({error.strerror}).") from None
    except RecursionError:
        raise BadDataset(f"{path} is nested too deeply to be questions; correct it.") from None
    except ValueError as error:
        raise BadDataset(f"{path} is not JSON ({error}); correct it.") from None
    if not isinstance(records, list) or not records:
        raise BadDataset(f"{path} must be a list of questions with at least one; correct it.")
    questions = tuple(
        question_from(record, f"{path}, question {number}")
        for number, record in enumerate(records, start=1)
    )
    check_ids(questions, path)
    chunks = directory / CHUNKS
    return Dataset(
        directory=directory,
        questions=questions,
        chunks=chunks if chunks.is_file() else None,
        hash=hashlib.sha256(content).hexdigest(),
    )


def check_ids(questions: Sequence[GoldQuestion], place: object) -> None:
    """Raise `BadDataset` where two questions have one id: results are kept by it."""
    twice = [qid for qid, n in Counter(question.qid for question in questions).items() if n > 1]
    if twice:
        raise BadDataset(f"{place}: the id {twice[0]!r} is used more than once; correct it.")


def question_from(record: object, place: str) -> GoldQuestion:
    """A question as A-RAG's form writes it: `qid` or `id`, `question`, `answer`, and optionally
    `answer_aliases`, `supporting_chunk_ids`, and `type` or `question_type`. `place` is named where
    it is wrong."""
    if not isinstance(record, Mapping):
        raise BadDataset(f"{place} is no object with `qid` and `question`; correct it.")
    qid = record.get("qid", record.get("id"))
    if isinstance(qid, bool) or not isinstance(qid, str | int) or not _clean(qid):
        raise BadDataset(f"{place} has no `qid`; give each question an id of its own.")
    question = record.get("question")
    if not isinstance(question, str) or not _clean(question):
        raise BadDataset(f"{place} has no text in `question`; correct it.")
    return GoldQuestion(
        qid=_clean(qid),
        question=_clean(question),
        answer=_answer(record.get("answer"), place),
        aliases=_texts(record.get("answer_aliases"), f"{place}: `answer_aliases`"),
        supporting=_texts(record.get("supporting_chunk_ids"), f"{place}: `supporting_chunk_ids`"),
        kind=_clean(record.get("type") or record.get("question_type") or ""),
    )


def _answer(value: object, place: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float):
        return _clean(value)
    raise BadDataset(f"{place}: `answer` must be text; other right forms go in `answer_aliases`.")


def _texts(value: object, place: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(
        isinstance(one, str | int) and not isinstance(one, bool) for one in value
    ):
        raise BadDataset(f"{place} must be a list of texts; correct it.")
    return tuple(dict.fromkeys(text for one in value if (text := _clean(one))))


def _clean(value: object) -> str:
    return clean_text(str(value)).strip()
