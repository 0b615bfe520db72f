"""What a figure shows, in words, by a vision model: any that the setting `model` could name.

Only the picture and its caption are sent. When the model fails it is not asked again: a server that
is down would cost a wait for each figure.
"""

import asyncio
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agentic_rag.config import Settings
from agentic_rag.documents.ocr import Pixels
from agentic_rag.documents.reading import Describe
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from agentic_rag.models.chat import ChatModel

_PROMPTS = Path(__file__).parent / "prompts"
_MOST_SIDE = 1_568  # pixels; hosted models scale down to this or less
_MOST_TOKENS = 300


class DescriptionFailed(AragError):
    """The vision model could not be asked, or said nothing."""


def describer(settings: Settings, env: Mapping[str, str] = os.environ) -> Describe | None:
    """What asks the model of `images.describe`; None where no model is set. Raises
    ModelUnavailable."""
    if not settings.images.describe:
        return None
    from agentic_rag.models.chat import resolve_chat_model

    images = settings.images
    named = {"model": images.describe, "base_url": images.base_url}
    chosen = settings.model_copy(update={**named, "api_key_env": images.api_key_env})
    chat = resolve_chat_model(chosen, env)
    if chat.connect is None or chat.demonstration:
        raise DescriptionFailed(
            f"The model '{chat.name}' sees no pictures; set images.describe to one that does, or "
            "leave it empty."
        )
    broken: list[AragError] = []

    def describe(pixels: Pixels, language: str, caption: str) -> str:
        if broken:
            raise broken[0]
        prompt = _prompt(language) + (f"\n\n{caption}" if caption else "")
        asked = _asked(chat, images.timeout, _png(pixels), prompt)
        # In a thread, with a loop of its own: whoever indexes may have one running.
        with ThreadPoolExecutor(max_workers=1) as pool:
            try:
                return pool.submit(asyncio.run, asked).result()
            except AragError as error:
                broken.append(error)
                raise

    return describe


async def _asked(chat: "ChatModel", seconds: float, picture: bytes, prompt: str) -> str:
    from pydantic_ai.direct import model_request
    from pydantic_ai.exceptions import ModelConnectionError
    from pydantic_ai.messages import BinaryContent, ModelRequest, TextPart, UserPromptPart

    shown = BinaryContent(picture, media_type="image/png")
    request = ModelRequest(parts=[UserPromptPart([prompt, shown])])
    settings: Any = {"max_tokens": _MOST_TOKENS, "temperature": 0.0, "timeout": seconds}
    assert chat.connect is not None
    try:
        async with asyncio.timeout(seconds), chat.connect() as model:
            reply = await model_request(model, [request], model_settings=cast("Any", settings))
    except AragError:
        raise
    except TimeoutError:
        reason = f"did not answer within {seconds:g} s; raise images.timeout"
    except ModelConnectionError:
        reason = f"cannot be reached; {chat.unreachable}"
    except Exception as error:  # each provider's SDK has its own
        status = getattr(error, "status_code", None)
        said = f"HTTP {status}" if status else type(error).__name__
        reason = f"refused ({said}); check images.describe, and {chat.unreachable}"
    else:
        text = " ".join(part.content for part in reply.parts if isinstance(part, TextPart))
        if text.strip():
            return text
        reason = "said nothing; set images.describe to a model that sees pictures"
    raise DescriptionFailed(f"The model {chat.name} {reason}.")


def _png(pixels: Pixels) -> bytes:
    from PIL import Image

    image = Image.fromarray(pixels[:, :, ::-1])
    image.thumbnail((_MOST_SIDE, _MOST_SIDE))
    data = BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


@cache
def _prompt(language: str) -> str:
    return (_PROMPTS / f"describe_image.{language}.md").read_text(encoding="utf-8").strip()
