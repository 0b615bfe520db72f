"""A small dataset, and a policy that plays each question to an end that is known beforehand."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from agentic_rag.config import Settings
from agentic_rag.evaluation.dataset import Dataset, load_dataset
from agentic_rag.knowledge_base import KnowledgeBase
from tests.knowledge_base.embedders import HashEmbedder

FILLER = " ".join(f"Line {n} of the chronicle is about the weather." for n in range(40))
CHUNKS = {
    "c1": f"Oriole Bridge was designed by Ada Brown. {FILLER}",
    "c2": f"Wren Tower was finished in 1871. {FILLER}",
    "c3": f"Heron Mill grinds buckwheat. {FILLER}",
    "c4": f"蓝桥泵站有两台水泵。{FILLER}",
    "c5": f"Plover House burned down in 1902. {FILLER}",
}
# question, answer, supporting chunk, what becomes of it
QUESTIONS = {
    "right": ("Who designed Oriole Bridge?", "Ada Brown", "c1"),
    "unsurfaced": ("When was Wren Tower finished?", "1871", "c2"),
    "unread": ("What does Heron Mill grind?", "buckwheat", "c3"),
    "lost": ("蓝桥泵站有几台水泵？", "两台", "c4"),
    "limit": ("When did Plover House burn down?", "1902", "c5"),
    "failing": ("Which model fails here?", "none", "c1"),
    "absent": ("Who owned Plover House?", "nobody knows", "c5"),
}

Said = str | tuple[str, Mapping[str, object]] | Exception


@dataclass
class Policy:
    """Plays what `script` says for the question that is asked, by the number of tool results that
    it has seen. `asked` counts requests by question."""

    script: Callable[[str, int], Said]
    asked: dict[str, int] = field(default_factory=dict)
    name: str = "policy"  # without a price

    def turn(self, messages: Sequence[ModelMessage], info: AgentInfo) -> Said:
        parts = [part for message in messages for part in message.parts]
        sent = " ".join(str(part.content) for part in parts if isinstance(part, UserPromptPart))
        qid = next(qid for qid, (question, *_) in QUESTIONS.items() if question in sent)
        self.asked[qid] = self.asked.get(qid, 0) + 1
        seen = sum(isinstance(part, ToolReturnPart) for part in parts)
        forbidden = (info.model_settings or {}).get("tool_choice") == "none"
        return self.script(qid, -1 if forbidden or not info.function_tools else seen)

    @property
    def model(self) -> FunctionModel:
        def whole(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            said = self.turn(messages, info)
            if isinstance(said, Exception):
                raise said
            if isinstance(said, str):
                return ModelResponse(parts=[TextPart(said)])
            return ModelResponse(parts=[ToolCallPart(said[0], json.dumps(said[1]))])

        async def streamed(
            messages: list[ModelMessage], info: AgentInfo
        ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
            said = self.turn(messages, info)
            if isinstance(said, Exception):
                raise said
            if isinstance(said, str):
                yield said
            else:
                yield {
                    0: DeltaToolCall(
                        said[0], json.dumps(said[1]), tool_call_id=f"call-{len(messages)}"
                    )
                }

        return FunctionModel(whole, stream_function=streamed, model_name=self.name)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return write_dataset(tmp_path_factory.mktemp("birds"))


def write_dataset(folder: Path) -> Dataset:
    chunks = [{"id": name, "text": text} for name, text in CHUNKS.items()]
    questions = [
        {
            "qid": qid,
            "question": question,
            "answer": answer,
            "supporting_chunk_ids": [chunk],
            "type": "building",
        }
        for qid, (question, answer, chunk) in QUESTIONS.items()
    ]
    (folder / "chunks.json").write_text(json.dumps(chunks), encoding="utf-8")
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    return load_dataset(folder)


@pytest.fixture(scope="session")
def kb(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    settings = Settings(kb=tmp_path_factory.mktemp("kb"))
    kb = KnowledgeBase.open(settings.kb, settings=settings, embedder=HashEmbedder())
    assert dataset.chunks is not None
    kb.add([dataset.chunks])
    return kb


@pytest.fixture(scope="session")
def ids(kb: KnowledgeBase) -> dict[str, str]:
    """Chunk ids by the dataset's own."""
    return {str(chunk.source_id): chunk.chunk_id for chunk in kb.chunks(1)}


@pytest.fixture
def policy(ids: Mapping[str, str]) -> Policy:
    def search(*keywords: str) -> Said:
        return "keyword_search", {"keywords": list(keywords)}

    def read(name: str) -> Said:
        return "read_chunk", {"chunk_ids": [ids[name]]}

    scripts: dict[str, list[Said]] = {
        "right": [search("Oriole"), read("c1"), f"Ada Brown designed it [{ids['c1']}]."],
        "unsurfaced": [search("Heron"), read("c3"), f"In 1900 [{ids['c3']}]."],
        "unread": [search("Heron"), f"It grinds rye [{ids['c3']}]."],
        "lost": [search("蓝桥泵站"), read("c4"), f"三台 [{ids['c4']}]。"],
        "limit": [search("Plover"), search("chronicle"), search("weather")],
        "failing": [ModelHTTPError(400, "policy", {"error": {"message": "no such thing"}})],
        "absent": [search("Plover"), "Not in the documents: who owned it."],
    }

    def script(qid: str, seen: int) -> Said:
        if seen < 0 or (qid == "limit" and seen >= 3):
            return f"In 1903 [{ids['c5']}]."
        turns = scripts[qid]
        return turns[min(seen, len(turns) - 1)]

    return Policy(script)
