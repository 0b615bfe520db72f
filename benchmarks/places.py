"""Where benchmarks find their data, where they keep what they build, and their settings."""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Literal

from agentic_rag.config import Chunking, Embedding, Index, Search, Settings

ROOT = Path(__file__).resolve().parent.parent
OWN_DATA = Path(__file__).resolve().parent / "data"


def parser(description: str) -> argparse.ArgumentParser:
    """A command line with the options that every benchmark has."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "agentic-rag-benchmarks",
        help="directory for what is built once and used again (default: %(default)s)",
    )
    made.add_argument(
        "--data",
        type=Path,
        default=ROOT.parent / "shared" / "data",
        help="directory with hotpotqa/, musique/ and laws/ (default: ../shared/data)",
    )
    return made


def say(message: str) -> None:
    """Tell the person who waits; standard output is for tables."""
    print(message, file=sys.stderr, flush=True)


def default_settings(fusion: Literal["scaled", "rrf"] = "scaled") -> Settings:
    """The defaults, whatever the environment and arag.toml of the person who runs this say."""
    return Settings(
        chunking=Chunking(), embedding=Embedding(), search=Search(fusion=fusion), index=Index()
    )
