"""Lines of headers and footers that only number pages: "Page 3 of 12", "第 3 页 共 12 页"."""

import re

_PAGE_NUMBER = re.compile(
    r"(?:\b(?:pages?|seite|página|pagina|pag|of|von|sur|de|di|[ivxlc]+)\b|[第页頁共]|\d+"
    r"|[-–—.,()/|\s])*\Z",
    re.IGNORECASE,
)
_LONGEST = 40


def is_page_number(line: str) -> bool:
    """Whether a line says nothing but which page it is, or nothing at all."""
    return len(line) <= _LONGEST and _PAGE_NUMBER.match(line) is not None
