"""What a new process waits for with a knowledge base: `python -m benchmarks.opening KB MODE`.

Prints one JSON object, seconds by step. MODE is "warm" (everything loaded at once) or "lazy"
(each search loads what it needs).
"""

import json
import sys
import time
from collections.abc import Callable


def main(path: str, mode: str, rare: str, frequent: str) -> None:
    steps: dict[str, float] = {}

    def step(name: str, call: Callable[[], object]) -> object:
        began = time.perf_counter()
        result = call()
        steps[name] = time.perf_counter() - began
        return result

    def imports() -> None:
        import lance  # noqa: F401
        import polars  # noqa: F401

        import agentic_rag.knowledge_base.snapshot  # noqa: F401

    step("imports", imports)
    from agentic_rag.knowledge_base import KnowledgeBase
    from benchmarks.clustered import ClusteredEmbedder

    embedder = ClusteredEmbedder()
    began = time.perf_counter()
    snapshot = KnowledgeBase.open(path, create=False, embedder=embedder).snapshot()
    if mode == "warm":
        snapshot.warm()
        steps["open"] = time.perf_counter() - began
    else:
        step("semantic", lambda: snapshot.semantic_search("a first question"))
        steps["open"] = time.perf_counter() - began
    step("keyword rare", lambda: snapshot.keyword_search([rare]))
    step("keyword frequent", lambda: snapshot.keyword_search([frequent]))
    step("bm25", lambda: snapshot.bm25_search(frequent))
    step("read", lambda: snapshot.read_chunk(["1-1"]))
    print(json.dumps(steps))


if __name__ == "__main__":
    main(*sys.argv[1:5])
