"""The knowledge base of ARAG_KB or arag.toml as an agent for `adk run` and `adk web`."""

from agentic_rag.integrations.adk import root_agent

__all__ = ["root_agent"]
