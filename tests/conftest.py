"""What every test needs: the settings and keys of the person who runs it must not matter."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Machines are shared and slow at times; a test that is right is right at any speed.
settings.register_profile(
    "unhurried",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),  # there, the same examples every time
)
settings.load_profile("unhurried")

KEYS = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "DEEPSEEK_API_KEY",
    "SERPAPI_API_KEY",
    "TAVILY_API_KEY",
    "OLLAMA_HOST",
    "OLLAMA_BASE_URL",
)


@pytest.fixture(autouse=True)
def _nobodys_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*KEYS, *(name for name in os.environ if name.startswith("ARAG_"))]:
        if name != "ARAG_MODELS":  # where the fetched model lies on this machine is wanted
            monkeypatch.delenv(name, raising=False)
