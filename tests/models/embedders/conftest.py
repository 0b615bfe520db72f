"""A loopback embedding server for each test."""

from collections.abc import Iterator

import pytest

from tests.models.embedders.embedding_server import EmbeddingServer, running


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with running() as server:
        yield server
