"""The two-route pipeline (EasyRAG, arXiv 2410.10315): wide recall by words and by vectors,
reranking, fusion, compression, an answer that is refined.

graph.py is the order of the stages; each has a module of its own; prompts are files.
"""

from agentic_rag.strategies.pipeline.graph import first_prompt, pipeline
from agentic_rag.strategies.pipeline.parts import check_pipeline

__all__ = ["check_pipeline", "first_prompt", "pipeline"]
