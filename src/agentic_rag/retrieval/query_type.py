"""What a query asks for, by rules: something to the letter, a meaning, or both.

Article numbers (第三十八条, Article 12, Art. 6(1)(f), § 5), quoted phrases and identifiers
(ISO 9001, E-0423, foo_bar(), v2.3.1) are exact: vectors blur them, words do not.
"""

import re
import unicodedata
from typing import Literal

QueryType = Literal["exact", "semantic", "mixed"]

_HAN_DIGITS = "0-9零〇一二三四五六七八九十百千两"
_ARTICLE_HAN = (
    rf"第[{_HAN_DIGITS}]{{1,9}}[条章](?:之[{_HAN_DIGITS}]{{1,3}})?"
    rf"(?:\s?第[{_HAN_DIGITS}]{{1,5}}[款项目])*"
)
_PARAGRAPHS = r"\d+[a-z]?(?:\.\d+)*(?:\s?\(\w{1,5}\))*"  # 12, 6(1)(f), 3.2.1
_ARTICLE = (
    rf"(?:§{{1,2}}\s?|\b(?:articles?|arts?\.|sections?|sec\.|clauses?|recitals?|chapters?)\s)"
    rf"{_PARAGRAPHS}(?:\s?(?:-|–|,|and)\s?{_PARAGRAPHS})*"
)
_CALL = r"\b[a-z_][\w.]{0,80}\(\)"
_SNAKE = r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b|\b__\w+__"
_CAMEL = r"\b(?-i:[a-z]{2,20}(?:[A-Z][a-z0-9]+)+)\b"
_OPTION = r"(?<![\w-])--[a-z][\w-]+"
_STANDARD = (  # ISO 9001, GB/T 22239-2019, RFC 2616
    r"\b(?-i:ISO(?:/IEC)?|IEC|IEEE|RFC|GB(?:/[TZ])?|DIN|EN|ANSI|NIST|ASTM|JIS)"
    r"[ -]?\d{2,}(?:[-:.]\d+)*\b"
)
_CODE = r"\b[a-z]{1,12}(?:-[a-z0-9]{1,12})*-\d[\w.]*(?:-\w+)*\b"  # E-0423, CVE-2024-1234
_SERIAL = r"\b(?-i:[A-Z]{1,5}\d{2,}[A-Z\d]*)\b"  # MH370
_VERSION = r"\bv\d+(?:\.\d+)+\b|(?<![\d.])\d+(?:\.\d+){2,}\b"
_QUOTED = r"“[^“”]{1,300}”|「[^「」]{1,300}」|『[^『』]{1,300}』|\"[^\"]{1,300}\""
_EXACT = re.compile(
    "|".join(
        [
            _QUOTED,
            _ARTICLE_HAN,
            _ARTICLE,
            _CALL,
            _SNAKE,
            _CAMEL,
            _OPTION,
            _STANDARD,
            _CODE,
            _SERIAL,
            _VERSION,
        ]
    ),
    re.IGNORECASE | re.ASCII,
)
_TITLE = re.compile(r"《[^《》]{1,100}》")
_LETTERS = re.compile(r"[\W_]+")
_LONGEST = 2_000  # characters looked at; what is longer is a text, not a query


def query_type(text: str) -> QueryType:
    """Exact where more than half of the query's letters are of exact things and it is no question
    about them; mixed where there are some, or a title in 《》, among other words; else semantic."""
    plain = unicodedata.normalize("NFKC", text[:_LONGEST])
    without_titles = _TITLE.sub(" ", plain)
    rest = _EXACT.sub(" ", without_titles)
    if rest == plain:
        return "semantic"
    whole, left = _letters(without_titles), _letters(rest)
    asks = left > 0 and plain.rstrip().endswith("?")
    return "exact" if whole > 2 * left and not asks else "mixed"


def _letters(text: str) -> int:
    return len(_LETTERS.sub("", text))
