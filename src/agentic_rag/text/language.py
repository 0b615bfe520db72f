"""Which script a text is written in; decides the prompt's language and the sentence rules."""

import re

# Unified ideographs with extensions A to H and the compatibility block.
HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
KANA = "\u3041-\u309f\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f"
HANGUL = "\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f"

_HAN = re.compile(f"[{HAN}]")
_KANA = re.compile(f"[{KANA}]")
_LETTER_WORD = re.compile(r"[^\W\d_]+")
_CJK_RUN = re.compile(f"[{HAN}{KANA}{HANGUL}]+")


def is_chinese(text: str) -> bool:
    """Whether a text is mostly Chinese, so that a Chinese prompt suits it.

    One Han character weighs as much as half a word of another script: "RAG 是什么" is Chinese,
    "What does 道 mean?" is not. Japanese (any kana) is not Chinese.
    """
    if _KANA.search(text):
        return False
    han = len(_HAN.findall(text))
    others = len(_LETTER_WORD.findall(_CJK_RUN.sub(" ", text)))
    return han > 0 and han >= 2 * others


def language_code(text: str) -> str:
    """ISO 639-1 code for the sentence splitter: "ja", "zh" or "en" (the default rules)."""
    sample = text[:4000]
    if _KANA.search(sample):
        return "ja"
    return "zh" if _HAN.search(sample) else "en"
