"""How hard a model is asked to think: what the setting `agent.effort` becomes in a request."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.config import Effort

NAMES = ("thinking", "openai_reasoning_effort")  # in Pydantic AI's model settings
_OPENAI = "api.openai.com"


def effort_settings(model: "Model", effort: "Effort | None") -> dict[str, Any]:
    """What says `effort` to `model`; empty where nothing can.

    Pydantic AI sends `thinking` only to models that it knows to reason. Whether another one does
    is for its server to say, so one that speaks OpenAI's protocol is asked as it stands; OpenAI's
    own models are all known.
    """
    if effort is None:
        return {}
    profile = model.profile
    if profile.get("supports_thinking", False) or profile.get("thinking_always_enabled", False):
        return {"thinking": effort}
    return {"openai_reasoning_effort": effort} if _is_compatible_server(model) else {}


def _is_compatible_server(model: "Model") -> bool:
    try:
        from pydantic_ai.models.openai import OpenAIChatModel
    except ImportError:  # then this is none
        return False
    model = getattr(model, "wrapped", model)  # one that is paced
    return isinstance(model, OpenAIChatModel) and urlsplit(model.base_url).hostname != _OPENAI
