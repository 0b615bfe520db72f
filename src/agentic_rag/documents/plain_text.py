"""Plain text: the text as it is. Headings are not guessed."""

from agentic_rag.documents.document import Document
from agentic_rag.documents.headings import file_name


def parse_plain_text(uri: str, text: str, media_type: str) -> Document:
    """A document of clean text; its title is the file's name."""
    return Document(uri=uri, title=file_name(uri), media_type=media_type, text=text)
