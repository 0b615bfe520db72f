"""The documentation says what the code does: generated pages are new, examples run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentic_rag.cli import reference
from agentic_rag.config import Settings

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("page", ["cli.md", "configuration.md"])
def test_a_page_written_from_the_code_is_up_to_date(page: str) -> None:
    written = reference.pages(DOCS)[page]

    assert (DOCS / page).read_text(encoding="utf-8") == written, "run `make docs`"


def test_every_setting_has_a_meaning_and_no_meaning_is_left_over() -> None:
    names = set()
    for name, field in Settings.model_fields.items():
        inner = getattr(field.annotation, "model_fields", None)
        names |= {f"{name}.{one}" for one in inner} if inner else {name}

    assert names == set(reference.MEANING)


def test_the_python_examples_run_one_after_the_other(tmp_path: Path) -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    script = tmp_path / "examples.py"
    script.write_text("\n".join(blocks), encoding="utf-8")

    environment = {k: v for k, v in os.environ.items() if not k.startswith("ARAG_")}
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert len(blocks) > 8
    assert ran.returncode == 0, ran.stderr


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+\.md)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), f"{page.name} links to {target}"
