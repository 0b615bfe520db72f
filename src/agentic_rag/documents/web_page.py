"""A page fetched from the web: its main text, without menus, banners and footers.

Trafilatura (Barbaresi 2021, ACL demos) finds the main text; what it keeps goes through the same
reading as a saved page. A page that it finds nothing in is read whole.
"""

from dataclasses import replace

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.document import Document, Scalar
from agentic_rag.documents.html_page import parse_html

_LITTLE = 0.1  # a main text of less than this part of the whole page is mistrusted
_SHORT = 2_000  # characters; below, a page is little more than its frame and the rule is off


def parse_web_page(uri: str, text: str, media_type: str) -> Document:
    """A document of a fetched page's clean HTML. Raises UnreadableDocument."""
    import trafilatura

    whole = parse_html(uri, text, media_type)
    kept = trafilatura.extract(
        text,
        url=uri,
        output_format="html",
        include_tables=True,
        include_formatting=True,
        include_comments=False,
        favor_recall=True,
    )
    main = parse_html(uri, kept, media_type) if kept else None
    if main is None or not main.text.strip():
        return whole
    if len(whole.text) > _SHORT and len(main.text) < _LITTLE * len(whole.text):
        return whole
    # Not `extensive`: that guesses a date from any year on the page.
    found = trafilatura.extract_metadata(text, default_url=uri, extensive=False)
    metadata: dict[str, Scalar] = {
        name: one_line(value)
        for name in ("author", "date", "sitename")
        if (value := getattr(found, name, None))
    }
    return replace(main, title=one_line(found.title or "") or whole.title, metadata=metadata)
