"""The sections of the settings, frozen models; defaults name where their numbers come from."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError


def _variable_name(value: str) -> str:
    if value.strip() and not _NAME.fullmatch(value.strip()):
        raise PydanticCustomError(NO_NAME, "must be the *name* of the variable that holds the key")
    return value.strip()


_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
NO_NAME = "variable_name"  # what stands there is likely the key itself, which is not to be shown
VariableName = Annotated[str, AfterValidator(_variable_name)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


# What a profile sets where nothing else is said. For manuals EasyRAG (arXiv 2410.10315) cuts at
# 1,024 tokens with 200 of overlap, which gave it two points over 50.
_CHUNKING_PROFILES: dict[str, dict[str, int]] = {
    "default": {},
    "manual": {"size": 1024, "overlap_tokens": 200},
}


class Chunking(Section):
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


class Embedding(Section):
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


class Search(Section):
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


class AnswerSettings(Section):
    """What of the hits goes into a prompt."""

    passages: int = Field(5, ge=1)
    passage_tokens: int = Field(6000, ge=100)  # o200k tokens for all passages together


Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]


AgentTool = Literal["keyword_search", "semantic_search", "read_chunk"]


class AgentSettings(Section):
    """How far the agent may go, and what it sees of what its tools find."""

    max_steps: int = Field(15, ge=1)  # A-RAG
    token_budget: int = Field(128_000, ge=1000)  # o200k tokens of one request; A-RAG
    max_cost: float | None = Field(None, gt=0, allow_inf_nan=False)  # US dollars a question
    effort: Effort | None = None
    tools: tuple[AgentTool, ...] = ("keyword_search", "semantic_search", "read_chunk")
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

    @model_validator(mode="after")
    def _can_search(self) -> Self:
        if len(set(self.tools)) < len(self.tools) or not {*self.tools} - {"read_chunk"}:
            raise ValueError("tools must name keyword_search or semantic_search, each tool once")
        return self


class Index(Section):
    """What is taken in, and how often work is committed."""

    exclude: tuple[str, ...] = ()
    max_file_mb: int = Field(200, ge=1)
    batch_mb: float = Field(8, gt=0)
    batch_seconds: float = Field(20, gt=0)


class Ocr(Section):
    """How scanned pages and pictures are read, where the ocr extra is installed."""

    enabled: bool = True
    min_confidence: float = Field(0.5, ge=0, le=1)  # PP-OCR's own drop_score
    dpi: int = Field(200, ge=72, le=600)  # of a rendered page


class Images(Section):
    """Whether and how the figures inside documents are read; reading needs the ocr extra."""

    read: bool = False  # about a second each
    rules: str = ""  # a file in place of documents/image_rules.toml
    most: int = Field(500, ge=1)  # of one document
    min_side: int = Field(48, ge=1)  # pixels; what is smaller is an icon
    describe: str = ""  # a vision model, named as `model` is; "" = none
    base_url: str = ""
    api_key_env: VariableName = ""
    timeout: float = Field(60, gt=0)  # seconds for one description


class Rerank(Section):
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
    exit_threshold: float = Field(0.4, ge=0, le=1)
    max_tokens: int = Field(1024, ge=64)  # of query and text together

    @model_validator(mode="after")
    def _left_before_the_last_layer(self) -> Self:
        if self.exit != "off" and self.early_layer >= self.layer:
            raise ValueError(
                f"early_layer ({self.early_layer}) must be below layer ({self.layer}), or exit "
                'must be "off"'
            )
        return self


class Workflow(Section):
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


class Pipeline(Section):
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


class Web(Section):
    """How URLs are fetched."""

    allow_private: bool = False  # addresses of this machine and of private networks
    timeout: float = Field(30, gt=0)  # seconds for a whole page


class WebSearch(Section):
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


class Evaluation(Section):
    """How answers are judged, and how many questions are asked at a time."""

    judge_model: str = ""  # "" = no judge: only contain-match and the other measures in code
    judge_base_url: str = ""
    judge_api_key_env: VariableName = ""
    workers: int = Field(4, ge=1, le=64)  # questions at a time
    requests_per_minute: int | None = Field(None, ge=1)  # to the chat model, all workers together
    max_cost: float | None = Field(None, gt=0, allow_inf_nan=False)  # US dollars of a whole run


class Server(Section):
    """Where `arag serve` listens, and what it lets in."""

    host: str = "127.0.0.1"
    port: int = Field(8765, ge=0, le=65535)  # 0 = a free one
    token_env: VariableName = "ARAG_TOKEN"  # holds the bearer token, needed off loopback
    allow_origins: tuple[str, ...] = ()  # CORS; none = closed
    concurrent_questions: int = Field(4, ge=1, le=256)
    queued_questions: int = Field(16, ge=0)  # beyond these, 429
    question_timeout: float = Field(600, gt=0)  # seconds
    max_upload_mb: int = Field(200, ge=1)
    max_body_kb: int = Field(1024, ge=16)  # of a request that is no upload
    mcp_add_documents: bool = False
    mcp_language: Literal["en", "zh"] = "en"
