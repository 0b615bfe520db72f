"""What the Office formats share: parts in a ZIP archive, related to each other (Open Packaging
Conventions, ECMA-376 part 2), and properties that name the title and the author."""

import posixpath
import re
from dataclasses import dataclass, field

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.document import Scalar
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.office_types import refuse_old
from agentic_rag.documents.safe_xml import Element, attribute, children, descendants, parse_xml
from agentic_rag.documents.zip_safety import Archive, open_archive, read_member

# What programs write where nobody gave a title.
_NO_TITLE = re.compile(
    r"(?:(?:microsoft )?(?:word|powerpoint|excel)(?: (?:document|presentation|worksheet))?"
    r"|(?:document|presentation|book|workbook|untitled|slide|title)[ _-]*\d*"
    r"|powerpoint (?:演示文稿|プレゼンテーション|簡報)|幻灯片 ?\d*|投影片 ?\d*"
    r"|(?:无标题|未命名|無標題|文档|文檔|文件|演示文稿|工作簿|活頁簿|簡報).{0,4}"
    r"|.*\.(?:docx?|dotx?|docm|pptx?|potx?|xlsx?|xltx?|xlsm|tmp|rtf|wps|odt))\Z",
    re.IGNORECASE,
)
# Ten thousand pages of Word are some 100 MB.
_MOST_TREE_BYTES = 150_000_000
_WORD_TITLE = re.compile(r"Microsoft (?:Office )?(?:Word|PowerPoint|Excel) - ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of a part: the last word of its type (`footnotes`, `slide`), and the name of the
    part it leads to ("" where it leads out of the package)."""

    kind: str
    target: str


@dataclass(slots=True)
class Package:
    """An Office file. `damaged` gathers the parts that could be read only in part; `known` holds
    the texts of parts that many others share."""

    uri: str
    archive: Archive
    damaged: list[str] = field(default_factory=list)
    known: dict[str, list[str]] = field(default_factory=dict)

    def bytes_of(self, name: str) -> bytes | None:
        """A part's bytes, or None where there is no such part."""
        member = self.archive.find(name) if name else None
        return read_member(self.archive, member) if member else None

    def _tree_of(self, name: str) -> bytes | None:
        """A part that becomes a tree in memory, some ten times its size."""
        member = self.archive.find(name) if name else None
        return read_member(self.archive, member, _MOST_TREE_BYTES) if member else None

    def xml(self, name: str) -> Element | None:
        """A part's root element, or None where there is no such part."""
        data = self._tree_of(name)
        if data is None:
            return None
        root, whole = parse_xml(self.uri, data)
        if not whole:
            self.damaged.append(name)
        return root

    def optional_xml(self, name: str) -> Element | None:
        """The same for a part that the text can do without (styles, properties)."""
        try:
            return self.xml(name)
        except UnreadableDocument:
            self.damaged.append(name)
            return None

    def relations(self, name: str) -> dict[str, Relation]:
        """The relations of a part by their ids; those of the package for ""."""
        folder, _, last = name.rpartition("/")
        root = self.optional_xml(f"{folder}/_rels/{last}.rels" if name else "_rels/.rels")
        found = {}
        for relation in () if root is None else children(root, "Relationship"):
            target = attribute(relation, "Target")
            if attribute(relation, "TargetMode") == "External":
                target = ""
            elif target:
                target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            kind = attribute(relation, "Type").rpartition("/")[2]
            found[attribute(relation, "Id")] = Relation(kind, target)
        return found

    def related(self, name: str, kind: str) -> list[str]:
        """The names of the parts that a part leads to by relations of one kind."""
        return [
            relation.target
            for relation in self.relations(name).values()
            if relation.kind == kind and relation.target
        ]

    def main_part(self) -> str:
        """The name of the part that holds the document. Raises UnreadableDocument without one."""
        for name in self.related("", "officeDocument"):
            if self.archive.find(name):
                return name
        for name in ("word/document.xml", "ppt/presentation.xml", "xl/workbook.xml"):
            if self.archive.find(name):
                return name
        raise UnreadableDocument(
            f"'{file_name(self.uri)}' is damaged: its main part is missing; open it in its own "
            "program and save it again"
        )

    def properties(self) -> tuple[str, dict[str, Scalar]]:
        """The title that a person gave ("" for none), and the metadata: the author."""
        names = self.related("", "core-properties") or ["docProps/core.xml"]
        root = self.optional_xml(names[0])
        if root is None:
            return "", {}
        found = {
            name: "".join(element.itertext())
            for name in ("title", "creator")
            for element in descendants(root, name)
        }
        return given_title(found.get("title", "")), author_metadata(
            one_line(found.get("creator", ""))
        )

    def damage_warnings(self) -> tuple[str, ...]:
        """A sentence for a person where parts were damaged."""
        if not self.damaged:
            return ()
        return ("part of the file is damaged: text may be missing; save it again and index it",)


def open_package(uri: str, data: bytes) -> Package:
    """The Office file that `data` is. Raises UnreadableDocument for what is no ZIP archive, and
    UnsupportedDocument for a file of a format before 2007."""
    refuse_old(uri, data)
    return Package(uri, open_archive(uri, data))


def given_title(text: str) -> str:
    """A title out of properties, "" where a program put it there."""
    title = _WORD_TITLE.sub("", one_line(text))
    return "" if _NO_TITLE.match(title) else title


def author_metadata(author: str) -> dict[str, Scalar]:
    """The author as metadata, left out where it names the library that wrote the file."""
    return {} if author.lower() in ("", "python-docx", "openpyxl") else {"author": author}


def relation_id(element: Element) -> str:
    """The relation that an element names by its attribute `r:id`, whatever other id it has."""
    for key, value in element.attrib.items():
        if key.startswith("{") and key.endswith("}id"):
            return str(value)
    return ""
