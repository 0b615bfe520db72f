"""A session of ADK's in-memory runner, and what its events and state come to."""

from collections.abc import Sequence
from typing import Any

from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.events import Event
from google.adk.runners import InMemoryRunner
from google.genai import types


class Session:
    """One conversation with an agent."""

    def __init__(self, agent: Any) -> None:
        self.runner = InMemoryRunner(agent=agent, app_name="tested")
        self.id = ""

    async def ask(self, question: str, *, streaming: bool = False) -> list[Event]:
        """The events of a question in words."""
        return await self.send(types.Part(text=question), streaming=streaming)

    async def send(self, part: types.Part, *, streaming: bool = False) -> list[Event]:
        """The events of a message."""
        if not self.id:
            made = await self.runner.session_service.create_session(app_name="tested", user_id="u")
            self.id = made.id
        mode = StreamingMode.SSE if streaming else StreamingMode.NONE
        events = self.runner.run_async(
            user_id="u",
            session_id=self.id,
            new_message=types.Content(role="user", parts=[part]),
            run_config=RunConfig(streaming_mode=mode),
        )
        return [event async for event in events]

    async def state(self) -> dict[str, Any]:
        """What the session service keeps."""
        kept = await self.runner.session_service.get_session(
            app_name="tested", user_id="u", session_id=self.id
        )
        assert kept is not None
        return dict(kept.state)


def texts(events: Sequence[Event], *, partial: bool = False) -> list[str]:
    """The texts of whole events, or of partial ones."""
    return [
        "".join(part.text or "" for part in event.content.parts or ())
        for event in events
        if event.content and bool(event.partial) is partial
    ]


def keys_in_order(events: Sequence[Event]) -> list[tuple[str, ...]]:
    """The keys of each change of the state."""
    return [tuple(event.actions.state_delta) for event in events if event.actions.state_delta]
