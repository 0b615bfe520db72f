"""Settings: one model, filled from arag.toml, overridden by ARAG_* and then by flags.

Nothing secret is a setting: `api_key_env` holds the *name* of an environment variable.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from agentic_rag.errors import AragError


class BadSettings(AragError):
    """A setting has a value that cannot be used."""


class BadOverride(BadSettings):
    """A value that the caller gave cannot be used; `setting` is its name, `wrong` says why."""

    def __init__(self, setting: str, wrong: str) -> None:
        super().__init__(
            f"Setting '{setting}' {wrong}; correct it in the argument or option {setting}."
        )
        self.setting = setting
        self.wrong = wrong


def _variable_name(value: str) -> str:
    if value.strip() and not _NAME.fullmatch(value.strip()):
        raise PydanticCustomError(_NO_NAME, "must be the *name* of the variable that holds the key")
    return value.strip()


_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_NO_NAME = "variable_name"  # what stands there is likely the key itself, which is not to be shown
VariableName = Annotated[str, AfterValidator(_variable_name)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


# What a profile sets where nothing else is said. For manuals EasyRAG (arXiv 2410.10315) cuts at
# 1,024 tokens with 200 of overlap, which gave it two points over 50.
_CHUNKING_PROFILES: dict[str, dict[str, int]] = {
    "default": {},
    "manual": {"size": 1024, "overlap_tokens": 200},
}


class Chunking(_Section):
    """How documents are cut. Recorded in a knowledge base when it is made."""

    profile: Literal["default", "manual"] = "default"
    size: int = Field(1000, ge=50, le=100_000)  # o200k tokens; A-RAG, about 1,000
    overlap_tokens: int = Field(0, ge=0)
    overlap_sentences: int = Field(0, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _as_the_profile_says(cls, given: object) -> object:
        if not isinstance(given, Mapping) or not isinstance(given.get("profile"), str):
            return given
        return {**_CHUNKING_PROFILES.get(given["profile"], {}), **given}

    @property
    def sizes(self) -> dict[str, int]:
        """What a knowledge base records."""
        return self.model_dump(exclude={"profile"})

    @model_validator(mode="after")
    def _cuts_advance(self) -> Self:
        if self.overlap_tokens >= self.size:
            raise ValueError(f"overlap_tokens must be less than size, which is {self.size}")
        return self


class Embedding(_Section):
    """What turns sentences into vectors. The model is recorded in a knowledge base."""

    model: str = "local"
    base_url: str = ""
    api_key_env: VariableName = ""
    dimensions: int | None = Field(None, ge=1)
    query_prompt: str | None = None
    passage_prompt: str | None = None
    batch_size: int = Field(64, ge=1)
    concurrency: int = Field(4, ge=1, le=64)  # requests in flight
    timeout: float = Field(60, gt=0)  # seconds
    query_timeout: float = Field(10, gt=0)  # seconds
    patience: float = Field(180, ge=0)  # seconds; a model server is restarted in less
    with_heading: bool = True  # title and section path before each sentence


class Search(_Section):
    """How many hits, and how the semantic and the BM25 route are put together."""

    top_k: int = Field(5, ge=1, le=1000)  # A-RAG
    pool: int = Field(100, ge=10)  # candidates of each route, whatever k is
    fusion: Literal["scaled", "rrf"] = "scaled"
    semantic_weight: float = Field(0.8, ge=0)
    bm25_weight: float = Field(0.2, ge=0)
    rrf_k: int = Field(60, ge=1)  # Cormack et al. 2009

    @model_validator(mode="after")
    def _some_route_counts(self) -> Self:
        if not self.semantic_weight and not self.bm25_weight:
            raise ValueError("semantic_weight and bm25_weight must not both be 0")
        return self


class AnswerSettings(_Section):
    """What of the hits goes into a prompt."""

    passages: int = Field(5, ge=1)
    passage_tokens: int = Field(6000, ge=100)  # o200k tokens for all passages together


Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]


class AgentSettings(_Section):
    """How far the agent may go, and what it sees of what its tools find."""

    max_steps: int = Field(15, ge=1)  # A-RAG
    token_budget: int = Field(128_000, ge=1000)  # o200k tokens of one request; A-RAG
    max_cost: float | None = Field(None, gt=0, allow_inf_nan=False)  # US dollars a question
    effort: Effort | None = None
    calls_per_turn: int = Field(1, ge=1, le=20)  # A-RAG
    streaming: bool = True
    result_tokens: int = Field(5000, ge=200)  # o200k tokens of one tool result
    short_chunk_tokens: int = Field(120, ge=0)
    # What the agent sees of a result; all off is A-RAG's own behaviour.
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


class Ocr(_Section):
    """How scanned pages and pictures are read, where the ocr extra is installed."""

    enabled: bool = True
    min_confidence: float = Field(0.5, ge=0, le=1)  # PP-OCR's own drop_score
    dpi: int = Field(200, ge=72, le=600)  # of a rendered page


class Images(_Section):
    """Whether and how the figures inside documents are read; reading needs the ocr extra."""

    read: bool = False  # about a second each
    rules: str = ""  # a file in place of documents/image_rules.toml
    most: int = Field(500, ge=1)  # of one document
    min_side: int = Field(48, ge=1)  # pixels; what is smaller is an icon
    describe: str = ""  # a vision model, named as `model` is; "" = none
    base_url: str = ""
    api_key_env: VariableName = ""
    timeout: float = Field(60, gt=0)  # seconds for one description


class Rerank(_Section):
    """A model that orders what was found anew."""

    model: str = ""
    base_url: str = ""
    api_key_env: VariableName = ""
    candidates: int = Field(50, ge=1, le=1000)
    batch_size: int = Field(16, ge=1)
    timeout: float = Field(30, gt=0)  # seconds
    # The layer-wise reranker; the numbers are EasyRAG's.
    layer: int = Field(28, ge=1)
    early_layer: int = Field(12, ge=1)
    exit: Literal["off", "maximum", "entropy"] = "off"
    exit_threshold: float = Field(0.4, ge=0)
    max_tokens: int = Field(1024, ge=64)  # of query and text together


class Workflow(_Section):
    """The conditional workflow; the numbers are those of the system it follows."""

    rewrite: Literal["model", "rules"] = "model"
    rewrite_model: str = ""  # "" = the model of the question
    variants: int = Field(3, ge=0, le=6)
    threshold: int = Field(32, ge=0, le=40)  # of 40: 80 %
    rounds: int = Field(1, ge=1, le=3)  # of retrieval in the documents before the web
    main_query_weight: float = Field(2, gt=0)  # a variant's is 1; benchmarks/workflow.py
    profile: str = "general"  # or "legal", or the path of a template
    authority: tuple[Literal["documents", "web"], ...] = ("documents", "web")
    bm25_k1: float = Field(1.5, ge=0)
    bm25_b: float = Field(0.75, ge=0, le=1)
    temperature: float = Field(0.1, ge=0, le=2)
    top_p: float = Field(0.8, gt=0, le=1)
    rewrite_temperature: float | None = Field(None, ge=0, le=2)  # None = as every stage's
    evaluate_temperature: float | None = Field(None, ge=0, le=2)
    answer_temperature: float | None = Field(None, ge=0, le=2)
    rewrite_top_p: float | None = Field(None, gt=0, le=1)
    evaluate_top_p: float | None = Field(None, gt=0, le=1)
    answer_top_p: float | None = Field(None, gt=0, le=1)
    rewrite_tokens: int = Field(1024, ge=64)
    evaluate_tokens: int = Field(1536, ge=64)
    answer_tokens: int = Field(2048, ge=64)

    @model_validator(mode="after")
    def _each_origin_once(self) -> Self:
        if sorted(self.authority) != ["documents", "web"]:
            raise ValueError("authority must name documents and web, each once")
        return self


class Pipeline(_Section):
    """The two-route pipeline; the numbers are EasyRAG's (arXiv 2410.10315)."""

    expansion: Literal["none", "keywords", "hyde", "both"] = "none"
    hyde_alone: bool = False  # the hypothetical answer in place of the question, not beside it
    hyde_with_text: bool = False  # the best chunk by words is shown before it is written
    sparse: int = Field(192, ge=1)
    paths: int = Field(6, ge=0)
    dense: int = Field(288, ge=1)
    passages: int = Field(6, ge=1)
    fusion: Literal["rrf", "merged", "longer", "joined"] = "rrf"
    prompt: Literal["plain", "markdown", "thoughts", "focused"] = "plain"
    refine: bool = True
    compression: Literal["none", "bm25"] = "none"
    compression_rate: float = Field(0.5, gt=0, le=1)


class Web(_Section):
    """How URLs are fetched."""

    allow_private: bool = False  # addresses of this machine and of private networks
    timeout: float = Field(30, gt=0)  # seconds for a whole page


class WebSearch(_Section):
    """Where the web is searched when the documents do not hold the answer."""

    provider: str = ""  # "serpapi", "tavily", "searxng", "none"; "" = whose key or URL is at hand
    url: str = ""
    api_key_env: VariableName = ""
    results: int = Field(5, ge=1, le=20)  # as the conditional workflow
    location: str = ""
    hl: str = ""
    gl: str = ""
    read_pages: bool = True
    page_tokens: int = Field(1200, ge=50)  # o200k tokens of one page
    total_tokens: int = Field(4000, ge=100)
    timeout: float = Field(15, gt=0)  # seconds for a search, and for each page


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
        raise _first_problem(error, given) from None
    except SettingsError as error:
        raise BadSettings(_bad_variable(str(error))) from None
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


# Pydantic's words for these are Python's, not a user's.
_PLAIN = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be a section",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "model_type": "must be a section",
    "path_type": "must be a path",
    "string_type": "must be text",
    "tuple_type": "must be a list",
}


def _first_problem(error: ValidationError, given: Mapping[str, object]) -> BadSettings:
    problem = error.errors()[0]
    loc = [str(part) for part in problem["loc"]]
    name = ".".join(loc)
    wrong = _PLAIN.get(problem["type"], problem["msg"].replace("Input should be", "must be"))
    given_here = _is_given(loc, given)
    place = f"the argument or option {name}" if given_here else _place(loc)
    if problem["type"] == "extra_forbidden":
        where = f" (in {place})" if place else ""
        return BadSettings(
            f"There is no setting '{name}'{where}; docs/configuration.md lists them all."
        )
    correct = f"correct it in {place}" if place else "correct it"
    if problem["type"] == "value_error":  # of a section as a whole: what is wrong names both
        wrong = wrong.removeprefix("Value error, ")
        return BadSettings(f"Section '{name}': {wrong}; {correct}.")
    if problem["type"] != _NO_NAME:
        wrong = f"{wrong} (got {problem['input']!r})"
    if given_here:
        return BadOverride(name, wrong)
    return BadSettings(f"Setting '{name}' {wrong}; {correct}.")


def _is_given(loc: Sequence[str], given: Mapping[str, object]) -> bool:
    """Whether the caller gave the setting at `loc`, and not only another one of its section."""
    value: object = given
    for part in loc:
        if not isinstance(value, Mapping):  # the section was given whole, and is none
            return True
        if part not in value:
            return False
        value = value[part]
    return True


def _place(loc: list[str]) -> str:
    """Where the setting at `loc` was set: a variable or the file; "" if unknown."""
    set_by = {name.upper(): name for name, value in os.environ.items() if value}
    for depth in range(len(loc), 0, -1):
        variable = f"ARAG_{'__'.join(loc[:depth])}".upper()
        if variable in set_by:
            return f"the environment variable {set_by[variable]}"
    inner = f"ARAG_{'__'.join(loc)}__".upper()
    variables = sorted(name for upper, name in set_by.items() if upper.startswith(inner))
    if variables:
        return f"the environment variable {' or '.join(variables)}"
    return str(config_file() or "")


def _bad_variable(said: str) -> str:
    """What is wrong with a variable that should have held JSON."""
    for variable, example in _json_variables():
        name = next((n for n in os.environ if n.upper() == variable), "")
        try:
            json.loads(os.environ.get(name) or "null")
        except ValueError:
            return (
                f"The environment variable {name} is not valid JSON (got {os.environ[name]!r}); "
                f"write it like {name}='{example}'."
            )
    return f"An environment variable ARAG_… cannot be read ({said}); correct it."


def _json_variables() -> Iterator[tuple[str, str]]:
    """The variables that are read as JSON, each with an example: lists, and whole sections."""
    for name, field in Settings.model_fields.items():
        if not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            continue
        for inner, held in field.annotation.model_fields.items():
            if get_args(held.annotation)[1:] == (...,):
                default = held.default or ("*.log", "drafts/")
                yield f"ARAG_{name}__{inner}".upper(), json.dumps(list(default))
        yield f"ARAG_{name}".upper(), '{"SETTING": VALUE}'
