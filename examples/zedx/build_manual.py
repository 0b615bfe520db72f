"""A small manual as a zedx, out of a folder of Markdown pages, with a figure in it.

    python build_manual.py docs manual.zedx
    ARAG_IMAGES__READ=true ARAG_CHUNKING__PROFILE=manual arag index manual.zedx
    arag ask --strategy pipeline "How many litres a minute does the test pump move?"

A zedx is a ZIP archive of HTML pages with a `nodetree.xml`. The answer to that question stands in
no page: only the figure on the first one says it. Drawing it needs Pillow, which the ocr extra
brings.
"""

import re
import sys
import zipfile
from collections.abc import Iterator
from html import escape
from io import BytesIO
from pathlib import Path
from xml.sax.saxutils import quoteattr

# The parts of the manual, and the pages of each: names of files in the folder.
PARTS = {
    "Getting started": ("quickstart", "documents"),
    "Answering": ("workflow", "reranking"),
}
# What is drawn, and nowhere written.
FIGURE = ("Test pump QH-3072", "Delivery: 640 litres a minute", "Shut-off head: 58 m")


def build(docs: Path, zedx: Path) -> None:
    """Write the manual that `docs` holds. Raises FileNotFoundError where a page is missing, before
    anything is written."""
    names = [name for pages in PARTS.values() for name in pages]
    texts = {name: (docs / f"{name}.md").read_text(encoding="utf-8") for name in names}
    picture = drawn(FIGURE)
    tree = []
    with zipfile.ZipFile(zedx, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images/pump.png", picture)
        for part, pages in PARTS.items():
            nodes = []
            for name in pages:
                text = texts[name]
                body = "\n".join(html_of(text))
                if name == "quickstart":
                    body += shown_figure("What the test pump delivers is given in Figure 1.")
                title = text.splitlines()[0].lstrip("# ")
                archive.writestr(f"documents/{name}.html", page(title, body))
                nodes.append(f"<node name={quoteattr(title)} url='documents/{name}.html'/>")
            tree.append(f"<node name={quoteattr(part)}>{''.join(nodes)}</node>")
        archive.writestr("nodetree.xml", f"<tree>{''.join(tree)}</tree>")


def page(title: str, body: str) -> str:
    """A page in the frame that all have."""
    return (
        f'<html><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        f"<body><div>Agentic RAG manual</div>{body}<div>End of the page</div></body></html>"
    )


def shown_figure(sentence: str) -> str:
    """The figure, below a sentence that points to it."""
    return (
        f'<h2>Test pump</h2><p>{sentence}</p><figure><img src="../images/pump.png">'
        "<figcaption>Figure 1: Delivery of the pump</figcaption></figure>"
    )


def drawn(lines: tuple[str, ...]) -> bytes:
    """Lines as a picture: a PNG."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (720, 60 + 60 * len(lines)), "white")
    draw = ImageDraw.Draw(picture)
    for number, line in enumerate(lines):
        draw.text((30, 30 + 60 * number), line, "black", ImageFont.load_default(34))
    data = BytesIO()
    picture.save(data, "PNG")
    return data.getvalue()


def html_of(markdown: str) -> Iterator[str]:
    """The blocks of a page as HTML: headings, fenced code, tables, lists, paragraphs."""
    # An empty line ends a block, but not in fenced code.
    blocks = re.findall(r"^```.*?^```$|^(?!```)\S.*?(?=\n\s*\n|\n```|\Z)", markdown, re.M | re.S)
    for block in (block.strip() for block in blocks):
        lines = block.split("\n")
        if heading := re.fullmatch(r"(#{1,6}) (.+)", block):
            level = len(heading[1])
            yield f"<h{level}>{inline(heading[2])}</h{level}>"
        elif block.startswith("```"):
            yield f"<pre>{escape(chr(10).join(lines[1:-1]))}</pre>"
        elif block.startswith("|"):
            rows = [line.strip().strip("|").split("|") for line in lines if "---" not in line]
            cells = ["".join(f"<td>{inline(cell)}</td>" for cell in row) for row in rows]
            yield "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"
        elif block.startswith(("- ", "* ")):
            items = re.split(r"\n[-*] ", block[2:])
            yield "<ul>" + "".join(f"<li>{inline(item)}</li>" for item in items) + "</ul>"
        elif block:
            yield f"<p>{inline(block)}</p>"


def inline(text: str) -> str:
    """A line's text, links and code without their marks."""
    return escape(re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text).replace("`", "").strip())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python build_manual.py FOLDER_OF_MARKDOWN manual.zedx")
    try:
        build(Path(sys.argv[1]), Path(sys.argv[2]))
    except OSError as error:
        sys.exit(
            f"{error.filename}: {error.strerror}; give the folder docs of Agentic RAG, "
            "and a file to write."
        )
