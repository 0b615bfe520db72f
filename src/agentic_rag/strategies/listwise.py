"""A reranker that asks the chat model: it is shown all passages, numbered, and gives their order.

RankGPT (arXiv 2304.09542), in one request rather than in windows, since contexts have grown.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict

from agentic_rag.errors import AragError
from agentic_rag.models.reranker import Ranked, RerankFailed
from agentic_rag.strategies.passages import passages_block
from agentic_rag.strategies.reply import Prompt
from agentic_rag.strategies.structured import Structured, ask_for
from agentic_rag.strategies.support import Passage
from agentic_rag.strategies.trace import Usage
from agentic_rag.text.language import is_chinese
from agentic_rag.text.tokens import prefix_of_tokens

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.models.chat import ChatModel

_PROMPTS = Path(__file__).parent / "prompts"
_PASSAGE_TOKENS = 400  # o200k tokens; RankGPT cuts passages to 300 words
_LEAST = 60  # o200k tokens; with less of each, fewer are shown


class _Order(BaseModel):
    """The numbers of passages, best first."""

    model_config = ConfigDict(extra="ignore")

    order: list[int]


class Listwise:
    """The chat model as a reranker, for one question. Implements `Reranker`.

    A text's score is its place: 1 for the first, falling to 0. `usage` is what was spent so far.
    """

    def __init__(self, chat: "ChatModel", settings: "Settings") -> None:
        self.name = f"chat ({chat.name})"
        self.usage = Usage(cost=0.0)
        self._chat = chat
        self._settings = settings

    async def rerank(self, query: str, texts: Sequence[str]) -> list[Ranked]:
        """As in `Reranker`: numbers that are of no passage are ignored; a reply that is no order
        is RerankFailed."""
        if not texts:
            return []
        if self._chat.connect is None or self._chat.demonstration:
            raise RerankFailed(
                f"The model '{self._chat.name}' cannot put passages in order; set `model` to "
                "another one, or rerank.model to a reranker."
            )
        shown = self._cut(texts)
        within = self._settings.rerank.timeout
        try:
            async with asyncio.timeout(within):
                made = await self._asked(rerank_prompt(query, shown))
        except TimeoutError:
            raise RerankFailed(
                f"The reranker {self.name} did not answer within {within:g} s; raise "
                "rerank.timeout or lower rerank.candidates."
            ) from None
        self.usage += made.usage
        if made.value is None:
            raise RerankFailed(f"The reranker {self.name} gave no order: {made.problem}")
        order = [n - 1 for n in dict.fromkeys(made.value.order) if 1 <= n <= len(shown)]
        if not order:
            raise RerankFailed(f"The reranker {self.name} named none of the passages as useful.")
        return [Ranked(index, 1 - place / len(shown)) for place, index in enumerate(order)]

    def _cut(self, texts: Sequence[str]) -> list[str]:
        """As many texts as the model can be shown, each cut to its share."""
        room = self._chat.passage_tokens
        if room is None:
            return [prefix_of_tokens(text, _PASSAGE_TOKENS) for text in texts]
        few = texts[: max(1, room // _LEAST)]
        share = min(_PASSAGE_TOKENS, room // len(few))
        return [prefix_of_tokens(text, share) for text in few]

    async def _asked(self, prompt: Prompt) -> Structured[_Order]:
        chat, settings = self._chat, self._settings
        most = settings.max_output_tokens
        temperature = settings.temperature
        request: dict[str, Any] = {
            "max_tokens": min(most, chat.max_output_tokens or most),
            "timeout": settings.rerank.timeout,
            "max_retries": 0,
            "temperature": 0.0 if temperature is None else temperature,
        }
        assert chat.connect is not None
        try:
            async with chat.connect() as model:
                asked: AsyncGenerator[Any, None] = ask_for(
                    _Order,
                    model,
                    chat,
                    prompt,
                    cast("Any", request),
                    silence=settings.rerank.timeout,
                    tries=1,
                )
                async with aclosing(asked) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Structured):
                            return piece
        except AragError as error:  # the model's file or endpoint, before any request
            return Structured(None, str(error), Usage())
        raise AssertionError("a structured reply ends in one")


def rerank_prompt(query: str, texts: Sequence[str]) -> Prompt:
    """The request for an order of `texts`, numbered from 1, in the language of `query`."""
    language = "zh" if is_chinese(query) else "en"
    block = passages_block([Passage(str(n), text) for n, text in enumerate(texts, start=1)])
    user = Template(_read(f"rerank.question.{language}.md")).substitute(
        passages=block, question=query
    )
    return Prompt(_read(f"rerank.{language}.md"), user)


@cache
def _read(name: str) -> str:
    return (_PROMPTS / name).read_text(encoding="utf-8").strip()
