"""A folder that `adk run` and `adk web` find."""

from . import agent  # noqa: F401 - ADK looks for it
