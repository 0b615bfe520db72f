"""The embedded model, fetched once into the user's own folder."""

from pathlib import Path

import pytest

from agentic_rag.models.fetch import FetchFailed, fetch_embedded


@pytest.fixture(scope="session")
def smollm2() -> Path:
    try:
        return fetch_embedded().path
    except FetchFailed as error:
        pytest.skip(f"the embedded model cannot be fetched here: {error}")
