"""Questions of one's own: CSV, TSV, JSON lines or JSON, with English or Chinese headings.

Needed is the column `question` (问题). Others are `answer` (答案), `aliases` (别名, further
right answers), `supporting` (出处, what bears the answer: paths or names of documents, or chunk
ids), `id` (编号) and `type` (类型). Several aliases or sources are parted by `|`.
"""

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agentic_rag.documents.cleaning import clean_text
from agentic_rag.evaluation.dataset import BadDataset
from agentic_rag.evaluation.formats.prepared import REPEATED, Prepared, notes_of, without_repeats
from agentic_rag.evaluation.formats.source_file import Entry, as_text, entries_of, read_text
from agentic_rag.evaluation.records import GoldQuestion

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "query", "问题", "提问", "题目", "問題"),
    "answer": (
        *("answer", "gold", "gold_answer", "ground_truth", "reference", "reference_answer"),
        *("答案", "参考答案", "标准答案"),
    ),
    "aliases": ("aliases", "alias", "answer_aliases", "别名", "其他答案", "別名"),
    "supporting": (
        *("supporting", "supporting_chunk_ids", "source", "sources", "document", "documents"),
        *("出处", "来源", "依据", "文档", "出處"),
    ),
    "id": ("id", "qid", "_id", "编号", "序号", "編號"),
    "type": ("type", "kind", "question_type", "类型", "类别", "類型"),
}
_COLUMN_OF = {name: column for column, names in COLUMNS.items() for name in names}
_DELIMITERS = {".tsv": "\t,;", ".tab": "\t,;"}
_USUAL_DELIMITERS = ",;\t"
_SEPARATOR_LINE = re.compile(r"sep=(.)\n")  # Excel's first line
_PARTS = re.compile(r"[|｜]")  # the second is the full-width one
# Python refuses a cell of more than 131,072 characters unless told otherwise.
_LONGEST_CELL = 2**31 - 1


def from_table(path: Path) -> Prepared:
    """The questions of a table. A question without an id is known by the number of its record.
    Raises `BadDataset` that names the line."""
    text = read_text(path)
    begins = text.lstrip()[:1]
    entries = entries_of(text, path) if begins in ("{", "[") else list(_rows(text, path))
    if not entries:
        raise BadDataset(f"{path} holds no question.")
    pairs = [(entry, _question(entry, n)) for n, entry in enumerate(entries, start=1)]
    questions, repeated = without_repeats(pairs)
    return Prepared(questions, None, notes_of(Counter({REPEATED: repeated})))


def columns_of(headings: Iterable[str]) -> dict[str, str]:
    """Which heading stands for which column, as in `{"answer": "答案"}`; the first of two."""
    found: dict[str, str] = {}
    for heading in headings:
        name = unicodedata.normalize("NFKC", heading).strip().lower()
        if column := _COLUMN_OF.get(re.sub(r"[\s-]+", "_", name)):
            found.setdefault(column, heading)
    return found


def _question(entry: Entry, number: int) -> GoldQuestion:
    names = columns_of(entry.fields)
    if "question" not in names:
        raise BadDataset(f"{entry.place} has no `question` (问题); give it one.")

    def parts(column: str) -> tuple[str, ...]:
        value = entry.fields.get(names.get(column, ""))
        if value is None:
            return ()
        place = f"{entry.place}: `{names[column]}`"
        given = value if isinstance(value, list) else _PARTS.split(as_text(value, place))
        return tuple(dict.fromkeys(text for one in given if (text := as_text(one, place))))

    def text(column: str) -> str:
        return entry.text(names[column]) if column in names else ""

    answer = text("answer")
    return GoldQuestion(
        qid=text("id") or str(number),
        question=entry.needed(names["question"]),
        answer=answer,
        aliases=tuple(name for name in parts("aliases") if name != answer),
        supporting=parts("supporting"),
        kind=text("type"),
    )


def _rows(text: str, path: Path) -> Iterator[Entry]:
    """The rows of delimited text as records by their headings."""
    text = clean_text(text)
    begins = 1
    delimiters = _DELIMITERS.get(path.suffix.lower(), _USUAL_DELIMITERS)
    if marked := _SEPARATOR_LINE.match(text):
        delimiters, text, begins = marked[1], text[marked.end() :], 2
    rows = _read(text, _delimiter(text, delimiters), path, begins)
    line, headings = next(rows, (begins, ()))
    named = [heading for heading in headings if heading.strip()]
    twice = [heading for heading, count in Counter(named).items() if count > 1]
    if twice:
        raise BadDataset(f"{path}, line {line}: the heading {twice[0]!r} stands twice; rename one.")
    if not named:
        raise BadDataset(
            f"{path} is empty; its first line names the columns, one of them `question`."
        )
    if "question" not in columns_of(named):
        raise BadDataset(
            f"{path}, line {line} has no heading `question` (问题), but: "
            f"{', '.join(named)[:200]}; name the columns in the first line."
        )
    for line, cells in rows:
        place = f"{path}, line {line}"
        if any(cell.strip() for cell in cells[len(headings) :]):
            raise BadDataset(
                f"{place} has {len(cells)} cells and there are {len(headings)} headings; put a "
                "text that holds the delimiter in quotation marks."
            )
        yield Entry(dict(zip(headings, cells, strict=False)), place)


def _read(
    text: str, delimiter: str, path: Path, begins: int
) -> Iterator[tuple[int, Sequence[str]]]:
    """Each row that is not empty, with the line it begins in."""
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    while True:
        line = begins + reader.line_num
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            raise BadDataset(
                f"{path}, line {line}: its quotation marks do not match; inside a text in "
                'quotation marks write "" for one.'
            ) from None
        if any(cell.strip() for cell in row):
            yield line, row


def _delimiter(text: str, usual: str) -> str:
    """The delimiter with which a heading `question` stands in the first line."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    for delimiter in usual:
        headings = next(csv.reader([first], delimiter=delimiter), [])
        if "question" in columns_of(headings):
            return delimiter
    return usual[0]
