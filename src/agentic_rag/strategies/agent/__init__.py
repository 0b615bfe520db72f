"""The agent: the model itself drives three retrieval tools of different grain (A-RAG,
arXiv 2602.03442).

loop.py is the loop, limits.py what ends it, forcing.py how it then ends; tools.py are the tools,
display.py what the model sees of their results, tracker.py what it has seen already; toolset.py
gives the tools to an agent of anyone's own.
"""

from agentic_rag.strategies.agent.loop import agent, check_tools
from agentic_rag.strategies.agent.requests import ModelWithoutTools
from agentic_rag.strategies.agent.show_prompt import first_prompt, show_prompt
from agentic_rag.strategies.agent.toolset import retrieval_toolset

__all__ = [
    "ModelWithoutTools",
    "agent",
    "check_tools",
    "first_prompt",
    "retrieval_toolset",
    "show_prompt",
]
