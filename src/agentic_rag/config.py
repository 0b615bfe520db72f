"""Settings: one model, filled from arag.toml, overridden by ARAG_* and then by flags.

Nothing secret is a setting: `api_key_env` holds the *name* of an environment variable.
"""

import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from agentic_rag.errors import AragError


class BadSettings(AragError):
    """A setting has a value that cannot be used."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Chunking(_Section):
    """How documents are cut. Recorded in a knowledge base when it is made."""

    size: int = Field(1000, ge=50, le=100_000)  # o200k tokens; A-RAG, about 1,000
    overlap_tokens: int = Field(0, ge=0)
    overlap_sentences: int = Field(0, ge=0)


class Embedding(_Section):
    """What turns sentences into vectors. The model is recorded in a knowledge base."""

    model: str = "local"
    batch_size: int = Field(64, ge=1)
    with_heading: bool = True  # title and section path before each sentence


class Search(_Section):
    """How many hits, and how the semantic and the BM25 route are put together."""

    top_k: int = Field(5, ge=1, le=1000)  # A-RAG
    pool: int = Field(100, ge=10)  # candidates of each route, whatever k is
    fusion: Literal["scaled", "rrf"] = "scaled"
    semantic_weight: float = Field(0.8, ge=0)
    bm25_weight: float = Field(0.2, ge=0)
    rrf_k: int = Field(60, ge=1)  # Cormack et al. 2009


class AnswerSettings(_Section):
    """What of the hits goes into a prompt."""

    passages: int = Field(5, ge=1)
    passage_tokens: int = Field(6000, ge=100)  # o200k tokens for all passages together


Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]


class AgentSettings(_Section):
    """How far the agent may go, and what it sees of what its tools find."""

    max_steps: int = Field(15, ge=1)  # A-RAG
    token_budget: int = Field(128_000, ge=1000)  # o200k tokens of one request; A-RAG
    max_cost: float | None = Field(None, gt=0)  # US dollars a question
    effort: Effort | None = None
    calls_per_turn: int = Field(1, ge=1, le=20)  # A-RAG
    streaming: bool = True
    result_tokens: int = Field(5000, ge=200)  # o200k tokens of one tool result
    short_chunk_tokens: int = Field(120, ge=0)
    # What the agent sees of a result (issue 3); all off is A-RAG's own behaviour.
    labels: bool = True
    whole_short_chunks: bool = True
    mark_repeats: bool = True
    fold_equal: bool = True
    cap: bool = True


class Index(_Section):
    """What is taken in, and how often work is committed."""

    exclude: tuple[str, ...] = ()
    max_file_mb: int = Field(200, ge=1)
    batch_mb: float = Field(8, gt=0)
    batch_seconds: float = Field(20, gt=0)


class Settings(BaseSettings):
    """Every setting. `ARAG_SEARCH__TOP_K=7` sets `top_k` of section `search`."""

    model_config = SettingsConfigDict(
        env_prefix="ARAG_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        protected_namespaces=(),
    )

    kb: Path = Path(".arag")
    strategy: str = ""
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    temperature: float | None = None
    max_output_tokens: int = Field(2048, ge=1)
    model_timeout: float = Field(120, gt=0)  # seconds
    chunking: Chunking = Chunking()
    embedding: Embedding = Embedding()
    search: Search = Search()
    answer: AnswerSettings = AnswerSettings()
    agent: AgentSettings = AgentSettings()
    index: Index = Index()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        found = config_file()
        if found is None:
            return init_settings, env_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, found)


def config_file() -> Path | None:
    """The arag.toml in force: ARAG_CONFIG, else the nearest one from here upwards, else None."""
    named = os.environ.get("ARAG_CONFIG")
    if named:
        path = Path(named)
        if not path.is_file():
            raise BadSettings(
                f"ARAG_CONFIG names {named}, which is not a file; correct or unset it."
            )
        return path
    here = Path.cwd()
    return next(
        (d / "arag.toml" for d in (here, *here.parents) if (d / "arag.toml").is_file()), None
    )


def load_settings(**overrides: object) -> Settings:
    """The settings in force; `overrides` (flags) win, those that are None are left out.

    A relative `kb` in arag.toml is taken from that file's folder. Raises `BadSettings` with the
    first thing that is wrong.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        settings = Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        raise BadSettings(_first_problem(error)) from None
    except ValueError as error:  # arag.toml is not TOML
        raise BadSettings(f"{config_file()} is not valid TOML ({error}); correct it.") from None
    file = config_file()
    if file and "kb" not in given and "ARAG_KB" not in os.environ and not settings.kb.is_absolute():
        settings = settings.model_copy(update={"kb": file.parent / settings.kb})
    return settings


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"There is no setting '{name}'; docs/configuration.md lists them all."
    return (
        f"Setting '{name}': {problem['msg']} (got {problem['input']!r}); correct it in arag.toml, "
        "the environment or the flag."
    )
