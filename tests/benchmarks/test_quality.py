"""The question file is well formed, and the metrics are right on cases worked by hand."""

import json
from pathlib import Path

import pytest

from benchmarks import laws
from benchmarks.laws import Article
from benchmarks.metrics import mean, rank_of, recall
from benchmarks.places import OWN_DATA

_LAW = """# 中华人民共和国示例法

2020年1月1日 通过

## 第一章 总则

第一条 为了示例，制定本法。

第二条 示例应当具备下列条件:

（一）清楚明白而且简短；

（二）与别的示例不同。

## 第二章 附则

第三条 本法自公布之日起施行。
"""


def test_there_are_twenty_questions_each_with_one_to_three_articles() -> None:
    rows = json.loads((OWN_DATA / "laws_questions.json").read_text(encoding="utf-8"))
    assert len({row["question"] for row in rows}) == 20
    assert len({row["law"] for row in rows}) == 3
    for row in rows:
        assert set(row) == {"question", "law", "articles"}
        assert 1 <= len(row["articles"]) <= 3
        assert all(number.startswith("第") and number.endswith("条") for number in row["articles"])


def test_off_topic_queries_are_not_those_that_set_the_threshold() -> None:
    shipped = OWN_DATA.parents[1] / "src/agentic_rag/knowledge_base/off_topic_queries.txt"
    ours = (OWN_DATA / "off_topic_queries.txt").read_text(encoding="utf-8").splitlines()
    assert len(set(ours)) == 20
    assert not set(ours) & set(shipped.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(
    ("ranked", "k", "expected"),
    [
        (["a", "x", "b"], 2, 0.5),
        (["a", "x", "b"], 3, 1.0),
        (["a", "a", "a"], 2, 0.5),  # one id several times is one found
        ([], 5, 0.0),
    ],
)
def test_recall_is_the_share_of_right_ids_found(ranked: list[str], k: int, expected: float) -> None:
    assert recall(ranked, {"a", "b"}, k) == expected


def test_rank_is_that_of_the_first_right_id() -> None:
    assert rank_of(["x", "a", "b"], {"a", "b"}) == 2
    assert rank_of(["x"], {"a"}) is None
    assert mean([1.0, 0.5]) == 0.75


@pytest.fixture
def law(tmp_path: Path) -> list[Article]:
    path = tmp_path / "law.md"
    path.write_text(_LAW, encoding="utf-8")
    return laws.articles_of(path)


def test_a_law_is_cut_at_its_articles_and_headings_belong_to_none(law: list[Article]) -> None:
    assert [article.id for article in law] == [
        "中华人民共和国示例法 第一条",
        "中华人民共和国示例法 第二条",
        "中华人民共和国示例法 第三条",
    ]
    assert law[1].text.endswith("（二）与别的示例不同。")


def test_an_article_cut_by_a_chunk_border_counts_only_with_both_chunks(law: list[Article]) -> None:
    head = "第一条 为了示例，制定本法。\n\n第二条 示例应当具备下列条件:\n（一）清楚明白而且简短；\n"
    tail = "（二）与别的示例不同。"
    assert not laws.is_in_chunks(law[1], [head])
    assert laws.is_in_chunks(law[1], [head, tail])


def test_a_snippet_shows_an_article_when_a_sentence_is_of_that_article_alone(
    law: list[Article],
) -> None:
    assert laws.is_in_snippet(law[1], "第一章 总则 … （一）清楚明白而且简短；", law)
    assert not laws.is_in_snippet(law[0], "（一）清楚明白而且简短；", law)
    assert not laws.is_in_snippet(law[1], "（一）", law)
