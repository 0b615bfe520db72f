"""Which figures of a document are worth their text: rules in a file (see image_rules.toml)."""

import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentic_rag.errors import AragError
from agentic_rag.text.language import HAN

_SHIPPED = Path(__file__).parent / "image_rules.toml"
_HAN = re.compile(f"[{HAN}]")
_WORD = re.compile(r"[^\W_]")
# What a drawing is, its description says at once.
_FIRST_SENTENCE = re.compile(r".*?(?:[。.!?！？]|\Z)", re.DOTALL)


class BadRules(AragError):
    """A file of rules for figures cannot be used."""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    pointed_to: bool = True
    least_characters: int = Field(4, ge=0)
    chinese_in_chinese: bool = True
    captions: list[str] = []
    descriptions: list[str] = []


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules as read; `version` tells files of rules apart."""

    pointed_to: bool
    least_characters: int
    chinese_in_chinese: bool
    version: str
    _captions: re.Pattern[str] | None
    _descriptions: re.Pattern[str] | None

    def refuse_caption(self, caption: str) -> bool:
        """Whether a figure is dropped for what it is called."""
        return bool(self._captions and self._captions.search(caption))

    def refuse_description(self, description: str) -> bool:
        """Whether a figure is dropped for what it is said to be."""
        first = _FIRST_SENTENCE.match(description.strip())
        return bool(self._descriptions and first and self._descriptions.search(first[0]))

    def has_useful_text(self, text: str) -> bool:
        """Whether a figure says enough."""
        return len(_WORD.findall(text)) >= max(1, self.least_characters)

    def fits_language(self, text: str, *, in_chinese: bool) -> bool:
        """Whether a figure's text is in the language of a document that is `in_chinese`, or not."""
        return not (self.chinese_in_chinese and in_chinese) or bool(_HAN.search(text))


@cache
def read_rules(path: str = "") -> Rules:
    """The rules in the file at `path`, "" being those that come with the program. Raises
    BadRules."""
    file = Path(path) if path else _SHIPPED
    try:
        data = file.read_bytes()
        found = _File.model_validate(tomllib.loads(data.decode("utf-8")))
    except OSError as error:
        raise BadRules(
            f"images.rules names {file}, which cannot be read ({error.strerror}); correct the path."
        ) from None
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(map(str, problem["loc"]))
        raise BadRules(
            f"'{name}' in {file} is wrong: {problem['msg'].lower()}; write it as in the rules that "
            f"come with the program, {_SHIPPED}."
        ) from None
    except ValueError as error:
        raise BadRules(f"{file} is not valid TOML ({error}); correct it.") from None
    return Rules(
        found.pointed_to,
        found.least_characters,
        found.chinese_in_chinese,
        hashlib.blake2b(data, digest_size=4).hexdigest(),
        _any_of(found.captions),
        _any_of(found.descriptions),
    )


def _any_of(words: list[str]) -> re.Pattern[str] | None:
    """A pattern of words: those of Latin letters, and their plurals, with nothing beside them."""
    patterns = [
        rf"(?<![A-Za-z]){re.escape(word)}(?:e?s)?(?![A-Za-z])"
        if word.isascii()
        else re.escape(word)
        for word in words
        if word.strip()
    ]
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None
