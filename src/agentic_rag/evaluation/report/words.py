"""What reports say, in English and Chinese: `words.toml`, whose keys are the same in both."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

LANGUAGES = ("en", "zh")


@cache
def words() -> Mapping[str, Mapping[str, str]]:
    """The words by language and key."""
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def word(key: str, language: str = "en") -> str:
    """One of them."""
    return words()[language][key]
