"""Settings: one model, filled from arag.toml, overridden by ARAG_* and then by flags.

Nothing secret is a setting: `api_key_env` holds the *name* of an environment variable.
"""

import os
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from agentic_rag.config_sections import (
    AgentSettings,
    AnswerSettings,
    Chunking,
    Effort,
    Embedding,
    Evaluation,
    Images,
    Index,
    Ocr,
    Pipeline,
    Rerank,
    Search,
    Server,
    VariableName,
    Web,
    WebSearch,
    Workflow,
)
from agentic_rag.config_wording import BadOverride, BadSettings, bad_variable, first_problem

__all__ = [
    "AgentSettings",
    "AnswerSettings",
    "BadOverride",
    "BadSettings",
    "Chunking",
    "Effort",
    "Embedding",
    "Evaluation",
    "Images",
    "Index",
    "Ocr",
    "Pipeline",
    "Rerank",
    "Search",
    "Server",
    "Settings",
    "VariableName",
    "Web",
    "WebSearch",
    "Workflow",
    "config_file",
    "load_settings",
]


class Settings(BaseSettings):
    """Every setting. `ARAG_SEARCH__TOP_K=7` sets `top_k` of section `search`."""

    model_config = SettingsConfigDict(
        env_prefix="ARAG_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        protected_namespaces=(),
    )

    kb: Path = Path(".arag")
    strategy: str = ""
    model: str = ""
    base_url: str = ""
    api_key_env: VariableName = ""
    temperature: float | None = Field(None, ge=0, le=2)
    max_output_tokens: int = Field(2048, ge=1)
    context_tokens: int | None = Field(None, ge=1000)  # of the chat model, about
    model_timeout: float = Field(120, gt=0)  # seconds
    chunking: Chunking = Chunking()
    embedding: Embedding = Embedding()
    search: Search = Search()
    answer: AnswerSettings = AnswerSettings()
    agent: AgentSettings = AgentSettings()
    index: Index = Index()
    ocr: Ocr = Ocr()
    images: Images = Images()
    web: Web = Web()
    web_search: WebSearch = WebSearch()
    rerank: Rerank = Rerank()
    workflow: Workflow = Workflow()
    pipeline: Pipeline = Pipeline()
    evaluation: Evaluation = Evaluation()
    server: Server = Server()

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
        raise first_problem(error, given, config_file()) from None
    except SettingsError as error:
        raise BadSettings(bad_variable(str(error), Settings)) from None
    except ValueError as error:  # arag.toml is not TOML
        raise BadSettings(f"{config_file()} is not valid TOML ({error}); correct it.") from None
    file = config_file()
    if (
        file
        and "kb" not in given
        and not os.environ.get("ARAG_KB")
        and not settings.kb.is_absolute()
    ):
        settings = settings.model_copy(update={"kb": file.parent / settings.kb})
    return settings
