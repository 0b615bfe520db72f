"""Two systems compared: the counts and p of cases worked by hand."""

from collections.abc import Sequence

import pytest

from agentic_rag.evaluation.records import GoldQuestion, Result
from agentic_rag.evaluation.report.comparing import NotComparable, compare
from agentic_rag.evaluation.report.systems import System, system_named
from tests.evaluation.report.conftest import WriteRun, answer

NUMBERS = range(8)
ASKED = tuple(
    GoldQuestion(qid=f"n{n}", question=f"What is {n}?", answer=f"word{n}") for n in NUMBERS
)


def said(rights: str, tokens: int = 100) -> list[Result]:
    """A result for each letter: R right, W wrong, F failed, - none."""
    made = []
    for n, letter in enumerate(rights):
        text = f"It is word{n}." if letter == "R" else "It is something else."
        if letter != "-":
            made.append(
                Result(
                    variant="agent",
                    qid=f"n{n}",
                    outcome="failed" if letter == "F" else "answered",
                    error="The model failed." if letter == "F" else "",
                    answer=None
                    if letter == "F"
                    else answer(ASKED[n].question, text, tokens=tokens),
                )
            )
    return made


def system(
    write_run: WriteRun,
    name: str,
    results: Sequence[Result],
    questions: Sequence[GoldQuestion] = ASKED,
    dataset_hash: str = "h",
) -> System:
    run = write_run(name, {"agent": results}, questions=questions, dataset_hash=dataset_hash)
    return system_named(str(run))


def test_counts_p_and_differences_by_hand(write_run: WriteRun) -> None:
    found = compare(
        system(write_run, "a", said("RRRRRRWF", tokens=300)),
        system(write_run, "b", said("RWWWWFRF", tokens=100)),
    )

    counts = found.paired
    assert (counts.both, counts.only_first, counts.only_second, counts.neither) == (1, 5, 1, 1)
    assert counts.p == pytest.approx(2 * (1 + 6) / 2**6)  # of 6 that differ at most 1 on one side
    assert [(one.question.qid, one.right) for one in found.changed] == [
        *[(f"n{n}", "first") for n in range(1, 6)],
        ("n6", "second"),
    ]
    assert found.changed[0].second.answer == "It is something else."
    assert (found.changed[4].second.outcome, found.changed[4].second.why) == ("failed", "failed")
    assert found.changed[4].second.error == "The model failed."
    tokens = next(one for one in found.differences if one.key == "retrieved_tokens")
    assert (tokens.first, tokens.second, tokens.difference.mean) == (300, 100, -200)
    assert tokens.difference.n == 6  # of the failed ones nothing is known
    assert found.measure == "contain" and not found.notes


def test_only_questions_of_both_count(write_run: WriteRun) -> None:
    other = (*ASKED[:2], ASKED[2].model_copy(update={"question": "Another one?"}), *ASKED[3:])
    found = compare(
        system(write_run, "a", said("RRRR----")),
        system(write_run, "b", said("-WRRRR--"), other, dataset_hash="other"),
    )

    assert (found.paired.both, found.paired.only_first) == (1, 1)  # n3 and n1
    assert found.only_asked == (2, 3)  # n0, n2; n2, n4, n5
    assert "different questions.json" in found.notes[0]


def test_what_cannot_be_compared_is_told_in_a_sentence(write_run: WriteRun) -> None:
    bare = [one.model_copy(update={"answer": ""}) for one in ASKED]
    first = system(write_run, "a", said("R-"))

    with pytest.raises(NotComparable, match="no question in common"):
        compare(first, system(write_run, "b", said("-R")))
    with pytest.raises(NotComparable, match="run `arag eval judge` on both"):
        compare(first, system(write_run, "c", said("R")), "judge")
    with pytest.raises(NotComparable, match="has a gold answer"):
        compare(system(write_run, "d", said("R"), bare), system(write_run, "e", said("R"), bare))
