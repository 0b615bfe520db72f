"""The conditional workflow: rewrite, retrieve, judge, and search the web if the documents fall
short.

graph.py is the graph; each stage has a module of its own; prompts and answer templates are files.
"""

from agentic_rag.strategies.workflow.graph import first_prompt, workflow
from agentic_rag.strategies.workflow.parts import check_workflow

__all__ = ["check_workflow", "first_prompt", "workflow"]
