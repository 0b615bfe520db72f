"""What is configured and whether it works; what is wrong with a knowledge base, and its cures."""

from agentic_rag.doctor.records import Finding, Part

__all__ = ["Finding", "Part"]
