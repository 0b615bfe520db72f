"""Generated requests over the whole OpenAPI document: none makes the server fail."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.server.app import create_app
from tests.cli.running import write_notes
from tests.knowledge_base.embedders import HashEmbedder
from tests.server.listening import served

EXAMPLES = int(os.environ.get("ARAG_TEST_EXAMPLES", "6"))  # of each operation; more by hand

_LONGEST = 60_000  # characters


def test_no_request_makes_the_server_fail(tmp_path: Path) -> None:
    kept = Settings(kb=tmp_path / "kb", model="none")
    kb = KnowledgeBase.open(kept.kb, settings=kept, embedder=HashEmbedder())
    kb.add([write_notes(tmp_path)])
    tried: dict[str, set[int]] = {}
    with served(create_app(kept, kb=kb)) as url:
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
        for found in schema.get_all_operations():
            operation = found.ok()
            tried[operation.label] = set()
            _try(operation, GenerationMode.POSITIVE, tried[operation.label])
            _try(operation, GenerationMode.NEGATIVE, tried[operation.label])

    assert len(tried) >= 15
    assert any(200 in statuses for statuses in tried.values())
    assert any(422 in statuses for statuses in tried.values())


def _try(operation: Any, mode: GenerationMode, statuses: set[int]) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
        database=None,
    )
    def one(case: Any) -> None:
        if len(case.as_curl_command()) > _LONGEST:
            return  # HTTP itself ends here: the head of a request has at most 64 KB
        response = case.call(timeout=20)
        statuses.add(response.status_code)
        if response.status_code < 400:
            return
        told = response.json()["error"]
        assert told["message"] and "Traceback" not in response.text
        # A model that is not at hand is told by 503: no other request may bring a 5xx about.
        unavailable = told["code"] in ("model_unavailable", "api_error")
        assert response.status_code < 500 or unavailable, (case.as_curl_command(), told)

    with suppress(Unsatisfiable):  # an operation that takes nothing cannot be given it wrongly
        one()
