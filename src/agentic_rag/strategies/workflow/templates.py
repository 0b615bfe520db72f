"""How an answer is laid out: the instructions of a profile, or of a file of the user's own."""

from functools import cache
from pathlib import Path

from agentic_rag.errors import AragError
from agentic_rag.text.language import is_chinese

_TEMPLATES = Path(__file__).parent / "templates"
PROFILES = ("general", "legal")


class UnknownProfile(AragError):
    """`workflow.profile` names neither a profile nor a file that can be read."""


def template(profile: str, question: str) -> str:
    """The layout of `profile` in the language of `question`. Raises UnknownProfile."""
    if profile in PROFILES:
        language = "zh" if is_chinese(question) else "en"
        return _own(_TEMPLATES / f"{profile}.{language}.md")
    try:
        text = Path(profile).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise UnknownProfile(
            f"The setting `workflow.profile` is {profile!r}, which is neither one of "
            f"{', '.join(PROFILES)} nor a text file that can be read; correct it."
        ) from None
    if not text:
        raise UnknownProfile(f"The answer template {profile} is empty; write what it should ask.")
    return text


@cache
def _own(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()
