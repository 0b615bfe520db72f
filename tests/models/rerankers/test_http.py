"""Rerankers behind `/rerank`: every maker's form, limits, faults, and what a person is told."""

import json
import logging
import threading
from typing import Any

import pytest

from agentic_rag.config import Rerank, Settings
from agentic_rag.models.reranker import Ranked, Reranker, RerankFailed, resolve_reranker
from tests.models.rerankers.rerank_server import RerankServer, serving

TEXTS = ["a boat", "the blue pump", "nothing", "a pump"]
QUERY = "blue pump"
RIGHT = [Ranked(1, 2.0), Ranked(3, 1.0), Ranked(0, 0.0), Ranked(2, 0.0)]
KEY = "sk-very-secret-key"


def reranker(server: RerankServer, path: str = "/v1", key: str = "", **settings: Any) -> Reranker:
    section = Rerank(
        model="http:bge-reranker-v2-m3",
        base_url=server.address + path,
        api_key_env="MY_KEY" if key else "",
        **settings,
    )
    made = resolve_reranker(Settings(rerank=section), None, env={"MY_KEY": key})
    assert made is not None
    return made


@pytest.mark.parametrize("form", ["jina", "vllm", "siliconflow", "voyage", "strict", "tei"])
async def test_every_form_is_spoken_and_put_in_order(form: str) -> None:
    with serving(RerankServer(form=form)) as server:
        made = reranker(server)
        assert await made.rerank(QUERY, TEXTS) == RIGHT
        asked = len(server.requests)
        assert await made.rerank(QUERY, TEXTS) == RIGHT
        assert len(server.requests) == asked + 1  # the form that was taken is kept
        last = server.requests[-1]
        assert last["query"] == QUERY
        if form != "tei":
            assert last["model"] == "bge-reranker-v2-m3"


async def test_a_server_that_is_replaced_by_one_of_another_form_is_understood() -> None:
    with serving(RerankServer(form="tei")) as server:
        made = reranker(server)
        await made.rerank(QUERY, TEXTS)
        server.form = "jina"
        assert await made.rerank(QUERY, TEXTS) == RIGHT


@pytest.mark.parametrize("form", ["jina", "strict", "tei"])
async def test_a_refusal_is_told_in_the_words_for_the_form_that_the_server_knows(
    form: str,
) -> None:
    with serving(RerankServer(form=form, most=0, refusal=400)) as server:
        with pytest.raises(RerankFailed, match=r"refuses the request \(400: batch size 4 > max"):
            await reranker(server).rerank(QUERY, TEXTS)
        assert len(server.requests) <= 6


async def test_no_texts_are_answered_without_a_call() -> None:
    with serving(RerankServer()) as server:
        assert await reranker(server).rerank(QUERY, []) == []
        assert server.requests == []


@pytest.mark.parametrize(
    ("results", "right"),
    [
        (lambda r: r[:2], [Ranked(0, 0.0), Ranked(2, 0.0)]),  # fewer than sent
        (lambda r: [*r, {"index": 4, "relevance_score": 9}], RIGHT),  # no such text
        (lambda r: [*r, {"index": -1, "relevance_score": 9}], RIGHT),
        (lambda r: [*r, {"index": 1, "relevance_score": 9}], RIGHT),  # given twice: the first
        (lambda r: [*r, {"index": 1.5, "relevance_score": 9}], RIGHT),
        (lambda r: [*r, {"index": None, "relevance_score": 9}, None, 7, "x", []], RIGHT),
        (lambda r: [*r, {"index": True, "relevance_score": 9}], RIGHT),
        (lambda r: [{**one, "index": str(one["index"])} for one in r], RIGHT),
        (lambda r: [{**one, "relevance_score": str(one["relevance_score"])} for one in r], RIGHT),
        (lambda r: [{"index": x["index"], "score": x["relevance_score"]} for x in r], RIGHT),
        (
            lambda r: [{**x, "relevance_score": None if x["index"] == 1 else 0.5} for x in r],
            [Ranked(0, 0.5), Ranked(2, 0.5), Ranked(3, 0.5)],
        ),
        (
            lambda r: [{**x, "relevance_score": "NaN" if x["index"] == 1 else 0.5} for x in r],
            [Ranked(0, 0.5), Ranked(2, 0.5), Ranked(3, 0.5)],
        ),
        (lambda r: [{**x, "document": None} for x in reversed(r)], RIGHT),
    ],
)
async def test_results_are_mapped_by_index_and_bad_ones_left_out(
    results: Any, right: list[Ranked]
) -> None:
    with serving(RerankServer(results=results)) as server:
        assert await reranker(server).rerank(QUERY, TEXTS) == right


async def test_what_is_left_out_is_told_once_in_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def results(found: list[dict[str, Any]]) -> Any:
        return [*found, {"index": 99, "relevance_score": 1}, {"index": 0, "relevance_score": 1}]

    with serving(RerankServer(results=results)) as server, caplog.at_level(logging.WARNING):
        await reranker(server).rerank(QUERY, TEXTS)
    (message,) = [record.getMessage() for record in caplog.records]
    assert "2 results that cannot be used" in message


async def test_a_bare_list_with_score_is_read_whoever_sends_it() -> None:
    bare = [{"index": 2, "score": 0.1}, {"index": 0, "score": 0.9}]
    with serving(RerankServer(reply=(200, {}, bare))) as server:
        assert await reranker(server).rerank(QUERY, TEXTS) == [Ranked(0, 0.9), Ranked(2, 0.1)]


@pytest.mark.parametrize("form", ["jina", "tei"])
@pytest.mark.parametrize("refusal", [413, 422, 400])
async def test_texts_are_sent_in_batches_only_where_the_server_refuses_so_many(
    form: str, refusal: int
) -> None:
    texts = [f"text {n}" + (" pump" if n % 7 == 3 else "") for n in range(40)]
    right = {n for n in range(40) if n % 7 == 3}
    with serving(RerankServer(form=form, most=16, refusal=refusal)) as server:
        made = reranker(server, batch_size=16)
        ranked = await made.rerank("pump", texts)
        assert {one.index for one in ranked[: len(right)]} == right
        assert sorted(one.index for one in ranked) == list(range(40))
        before = len(server.requests)
        await made.rerank("pump", texts)
        sizes = [len(r.get("texts") or r["documents"]) for r in server.requests[before:]]
        assert sizes == [16, 16, 8]  # the limit is remembered
    with serving(RerankServer(form=form)) as server:
        await reranker(server, batch_size=16).rerank("pump", texts)
        assert len(server.requests[-1].get("texts") or server.requests[-1]["documents"]) == 40


async def test_texts_too_long_for_the_model_are_cut_and_that_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    texts = ["pump " + "x " * 3_000, "y " * 3_000]
    with serving(RerankServer(longest=1_500)) as server, caplog.at_level(logging.WARNING):
        made = reranker(server)
        ranked = await made.rerank("pump", texts)
        assert [one.index for one in ranked] == [0, 1]
        assert "first 1000 characters" in caplog.text
        asked = len(server.requests)
        await made.rerank("pump", texts)
        assert len(server.requests) == asked + 1
    with serving(RerankServer(form="tei", longest=1_500)) as server:  # it cuts them itself
        await reranker(server).rerank("pump", texts)
        assert len(server.requests[-1]["texts"][0]) == len(texts[0])


HTML = "<!doctype html><html><body>Sign in</body></html>"


@pytest.mark.parametrize(
    ("status", "said", "wanted"),
    [
        (401, {"detail": "Unauthorized"}, "refuses the key .401: Unauthorized.; put the right key"),
        (403, "no", "refuses the key .403: no."),
        (404, {"detail": "Not Found"}, "was not found .404: Not Found.; check rerank.base_url"),
        (429, {"message": "slow down"}, "takes no more requests now .429: slow down."),
        (402, {"message": "no credit"}, "takes no more requests now"),
        (500, HTML, "failed .500.; look at the server"),
        (503, "", "failed .503."),
        (424, {"error": "Batch size error", "error_type": "Backend"}, "failed .424: Batch size"),
        (302, "", "points elsewhere"),
        (400, {"message": "model bge is unknown"}, "refuses the request .400: model bge is unk"),
        (200, HTML, "gave something else than JSON"),
        (200, {"error": {"message": "overloaded"}}, "gave no scores .overloaded."),
        (200, {"choices": []}, "gave no scores; check rerank.model"),
        (200, "null", "gave no scores"),
        (200, "[]", "no scores that can be used"),
        (200, {"results": [{"index": 77, "relevance_score": 1}]}, "no scores that can be used"),
    ],
)
async def test_a_fault_of_the_server_is_one_clear_sentence_without_the_key(
    status: int, said: Any, wanted: str
) -> None:
    headers = {"Location": "http://127.0.0.1:1/"} if status == 302 else {}
    with serving(RerankServer(reply=(status, headers, said))) as server:
        with pytest.raises(RerankFailed, match=wanted) as caught:
            await reranker(server, key=KEY).rerank(QUERY, TEXTS)
        assert server.keys[-1] == f"Bearer {KEY}"
    message = str(caught.value)
    assert "http:bge-reranker-v2-m3" in message
    assert KEY not in message
    assert "\n" not in message
    assert "<" not in message


async def test_a_server_that_repeats_the_key_does_not_have_it_shown() -> None:
    reply = (401, {}, {"detail": f"invalid key {KEY}"})
    with serving(RerankServer(reply=reply)) as server, pytest.raises(RerankFailed) as caught:
        await reranker(server, key=KEY).rerank(QUERY, TEXTS)
    assert KEY not in str(caught.value)
    assert "[key]" in str(caught.value)


async def test_a_server_that_wants_a_key_is_told_apart_from_one_that_refuses_it() -> None:
    with serving(RerankServer(reply=(401, {}, {"detail": "no key"}))) as server:
        with pytest.raises(RerankFailed, match=r"wants a key .*rerank\.api_key_env"):
            await reranker(server).rerank(QUERY, TEXTS)
        assert server.keys == [""]


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    wanted = pytest.raises(RerankFailed, match=r"did not answer within 0\.3 s")
    with serving(RerankServer(hang=threading.Event())) as server, wanted:
        await reranker(server, timeout=0.3).rerank(QUERY, TEXTS)


async def test_nothing_listening_is_said() -> None:
    with serving(RerankServer()) as server:
        gone = server.address
    section = Rerank(model="http:", base_url=gone)
    made = resolve_reranker(Settings(rerank=section), None)
    assert made is not None
    with pytest.raises(RerankFailed, match="cannot be reached; start it, or correct"):
        await made.rerank(QUERY, TEXTS)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("", "/rerank"),
        ("/", "/rerank"),
        ("/v1", "/v1/rerank"),
        ("/v2/", "/v2/rerank"),
        ("/v1/rerank", "/v1/rerank"),
        ("/gateway/rerank/", "/gateway/rerank"),
        ("/v1?api-version=1", "/v1/rerank?api-version=1"),
    ],
)
async def test_the_address_may_end_before_or_with_rerank(path: str, wanted: str) -> None:
    with serving(RerankServer()) as server:
        await reranker(server, path).rerank(QUERY, TEXTS)
        assert server.paths == [wanted]


async def test_text_that_is_no_utf_8_is_sent_all_the_same() -> None:
    with serving(RerankServer()) as server:
        ranked = await reranker(server).rerank("pump \ud800", ["a \ud800 pump", "敏感 \0"])
        assert [one.index for one in ranked] == [0, 1]
        assert json.dumps(server.requests[-1])
