"""The first request to a model, to be looked at instead of sent: `arag ask --show-prompt`."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ShownPrompt:
    """The system prompt, the user's message, and the tools as a provider gets them."""

    strategy: str
    system: str
    user: str
    tools: tuple[dict[str, Any], ...] = ()

    @property
    def text(self) -> str:
        """All of it, each part under a line that names it."""
        parts = ["--- system prompt ---", self.system]
        if self.tools:
            tools = json.dumps(self.tools, ensure_ascii=False, indent=2)
            parts += ["--- tools ---", tools]
        return "\n\n".join([*parts, "--- user message ---", self.user])
