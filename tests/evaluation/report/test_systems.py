"""The systems of a report, and what they are called."""

from pathlib import Path

import pytest

from agentic_rag.evaluation.report.systems import NothingToReport, system_named, systems_of
from agentic_rag.evaluation.running.result_file import NoRun
from tests.evaluation.report.conftest import WriteRun, results_of

BOTH = {"agent": results_of("agent"), "naive": results_of("naive")}


def test_a_name_is_as_long_as_it_must_be(write_run: WriteRun) -> None:
    two, one = write_run("two", BOTH), write_run("one")
    same = write_run("elsewhere/one")

    assert [system.name for system in systems_of([two])] == ["agent", "naive"]
    assert [system.name for system in systems_of([two, one])] == ["two:agent", "two:naive", "one"]
    assert [system.name for system in systems_of([one, same])] == [str(one), str(same)]
    assert len(systems_of([one, one.parent / "elsewhere" / ".." / "one"])) == 1


def test_a_variant_is_named_after_a_colon_even_where_folders_have_one(write_run: WriteRun) -> None:
    plain, colon = write_run("two", BOTH), write_run("at 10:30")

    assert system_named(f"{plain}:naive").variant == "naive"
    assert system_named(str(plain), "naive").name == "two:naive"
    assert system_named(f"{plain}:agent", "naive").variant == "agent"
    assert system_named(str(colon)).name == "at 10:30"
    assert system_named(f"{colon}:agent").variant == "agent"


def test_what_there_is_not_is_told_in_a_sentence(write_run: WriteRun, tmp_path: Path) -> None:
    two, empty = write_run("two", BOTH), write_run("empty", {"agent": []})

    with pytest.raises(NoRun, match="There is no run in"):
        systems_of([tmp_path])
    with pytest.raises(NothingToReport, match="no result yet"):
        systems_of([two, empty])
    with pytest.raises(NothingToReport, match="no result of agent yet"):
        system_named(str(empty))
    with pytest.raises(NothingToReport, match=r"several variants \(agent, naive\); name one"):
        system_named(str(two))
    with pytest.raises(NothingToReport, match="no variant 'naiv'; name one of: agent, naive"):
        system_named(f"{two}:naiv")
