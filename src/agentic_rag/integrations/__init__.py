"""Agentic RAG inside the frameworks of others, a module each; each has an extra of its name."""
