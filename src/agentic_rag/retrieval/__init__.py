"""Retrieval for the strategies that ask in several ways at once: query types, recall, fusion."""

from agentic_rag.retrieval.query_type import QueryType, query_type
from agentic_rag.retrieval.recall import Recalled, ScoredHit, recall

__all__ = ["QueryType", "Recalled", "ScoredHit", "query_type", "recall"]
