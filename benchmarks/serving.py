"""`arag serve` under load: searches and questions while documents come and go, then `kill -9`.

Run by `python benchmarks/serving.py --seconds 120`. Fifty clients search without a pause, first
alone, then beside ten that ask and one that adds and removes documents; the model is a script on
loopback, the embedder the real one. Printed are the times as the clients see them, errors, the
server's memory, and what was lost by the kill.
"""

import argparse
import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from benchmarks.corpus import Sources, sources, write_corpus
from benchmarks.places import say
from tests.cli.agent_model import AgentModel, playing

SEARCHERS, ASKERS = 50, 10
UPLOADED = 5  # files at a time; two of them are deleted again
LAST = 20  # files taken in just before the kill
WAIT = 60.0  # seconds for one request


@dataclass
class Seen:
    """What the clients of one kind saw."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def row(self, name: str, over: float) -> str:
        times = np.array(self.seconds or [float("nan")]) * 1000
        middle, late = np.percentile(times, [50, 95])
        rate = len(self.seconds) / over
        return (
            f"| {name} | {len(self.seconds):,} | {rate:.1f} | {middle:,.0f} ms | {late:,.0f} ms "
            f"| {len(self.errors)} |"
        )

    @property
    def p95(self) -> float:
        return float(np.percentile(self.seconds, 95))


class Server:
    """`arag serve` in a process of its own."""

    def __init__(self, kb: Path, model: AgentModel) -> None:
        command = [sys.executable, "-m", "agentic_rag", "--kb", str(kb), "serve", "--port", "0"]
        environment = {**os.environ, "OPENAI_API_KEY": "none", "ARAG_BASE_URL": model.address}
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "--model", "openai:scripted"],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        found = None
        while found is None:
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit("The server did not start.")
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
        self.url = found[0]
        while httpx.get(f"{self.url}/api/ready", timeout=WAIT).status_code != 200:
            time.sleep(0.02)
        self.ready = time.perf_counter() - self.began
        self.log: list[str] = []
        asyncio.get_running_loop().run_in_executor(None, self._read)

    def _read(self) -> None:
        """Keeps the pipe empty; what went wrong is remembered."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if '"level": "error"' in line or '"exception"' in line:
                self.log.append(line)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


async def memory(client: httpx.AsyncClient) -> float:
    """The server's resident memory in MB."""
    text = (await client.get("/metrics")).text
    found = re.search(r"^process_resident_memory_bytes ([\d.e+]+)", text, re.MULTILINE)
    assert found is not None
    return float(found[1]) / 1e6


async def again_and_again(
    until: float, seen: Seen, once: Callable[[], Awaitable[httpx.Response]]
) -> None:
    """Send requests one after the other to the time `until`."""
    while time.perf_counter() < until:
        began = time.perf_counter()
        try:
            reply = await once()
        except httpx.HTTPError as error:
            seen.errors.append(repr(error))
            continue
        seen.seconds.append(time.perf_counter() - began)
        if reply.status_code not in (200, 202, 204):
            seen.errors.append(f"{reply.status_code} {reply.text[:200]}")


async def searching(client: httpx.AsyncClient, queries: list[str], seconds: float) -> Seen:
    """Fifty clients that search."""
    seen = Seen()
    until = time.perf_counter() + seconds

    def once() -> Awaitable[httpx.Response]:
        return client.post("/api/search", json={"query": random.choice(queries)})

    await asyncio.gather(*(again_and_again(until, seen, once) for _ in range(SEARCHERS)))
    return seen


async def asking(client: httpx.AsyncClient, queries: list[str], seconds: float) -> Seen:
    """Ten clients that ask."""
    seen = Seen()
    until = time.perf_counter() + seconds

    def once() -> Awaitable[httpx.Response]:
        return client.post("/api/ask", json={"question": random.choice(queries)})

    await asyncio.gather(*(again_and_again(until, seen, once) for _ in range(ASKERS)))
    return seen


async def changing(client: httpx.AsyncClient, source: Sources, seconds: float) -> Seen:
    """One client that adds documents and takes some of them out again; a time is that from the
    upload to the end of its job."""
    seen = Seen()
    until = time.perf_counter() + seconds
    round_ = 0

    async def once() -> httpx.Response:
        nonlocal round_
        round_ += 1
        reply = await upload(client, source, f"round{round_}", UPLOADED)
        if reply.status_code != 202:
            return reply
        job = reply.json()
        while job.get("state") in ("queued", "running"):
            await asyncio.sleep(0.2)
            job = (await client.get(f"/api/jobs/{job['id']}")).json()
        if job.get("state") != "done":
            seen.errors.append(str(job)[:200])
        page = await client.get("/api/documents", params={"q": f"round{round_}-", "limit": 2})
        for one in page.json()["documents"]:
            reply = await client.delete(f"/api/documents/{one['number']}")
        return reply

    await again_and_again(until, seen, once)
    return seen


async def upload(
    client: httpx.AsyncClient, source: Sources, name: str, count: int
) -> httpx.Response:
    """Upload so many files of a few sentences."""
    files: list[Any] = []
    for number in range(count):
        text = " ".join(random.sample(source.english, 4))
        files.append(("files", (f"{name}-{number}.md", f"# {name}\n\n{text}\n".encode())))
    return await client.post("/api/documents", files=files)


async def names(client: httpx.AsyncClient) -> set[str]:
    """The paths of all documents."""
    found: set[str] = set()
    cursor: int | None = None
    while True:
        asked = {"limit": 500} if cursor is None else {"limit": 500, "cursor": cursor}
        page = (await client.get("/api/documents", params=asked)).json()
        found |= {one["uri"] for one in page["documents"]}
        cursor = page["next"]
        if cursor is None:
            return found


def _query(sentence: str) -> str:
    """Six words of a sentence that follow one another."""
    words = sentence.split()
    start = random.randrange(max(1, len(words) - 6))
    return " ".join(words[start : start + 6])


def client_of(server: Server) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    return httpx.AsyncClient(base_url=server.url, timeout=WAIT, limits=limits)


async def measure(root: Path, seconds: float, chunks: int) -> None:
    source = sources(root / "none")
    write_corpus(root / "docs", source, chunks)
    settings = Settings(kb=root / "kb")
    KnowledgeBase.open(settings.kb, settings=settings).add(root / "docs")
    queries = [_query(random.choice(source.english)) for _ in range(5000)]
    with playing(AgentModel()) as model:
        server = Server(settings.kb, model)
        say(f"Ready after {server.ready:.1f} s.")
        async with client_of(server) as client:
            await searching(client, queries, 5)  # everything is loaded
            alone = await searching(client, queries, seconds / 4)
            memories = [await memory(client)]

            async def watch() -> None:
                for _ in range(4):
                    await asyncio.sleep(seconds / 4)
                    memories.append(await memory(client))

            loaded, questions, changes, _ = await asyncio.gather(
                searching(client, queries, seconds),
                asking(client, queries, seconds),
                changing(client, source, seconds),
                watch(),
            )
            before = await names(client)
            reply = await upload(client, source, "last", LAST)
            taken = reply.status_code == 202
            server.kill()
        print("| | done | a second | p50 | p95 | errors |\n|---|---|---|---|---|---|")
        print(alone.row("searches alone", seconds / 4))
        print(loaded.row("searches beside the others", seconds))
        print(questions.row("questions", seconds))
        print(changes.row("documents added, some removed", seconds))
        print(f"\np95 beside the others: {loaded.p95 / alone.p95:.1f} times that alone.")
        print("Memory, MB, by quarters:", ", ".join(f"{one:.0f}" for one in memories))
        print(f"Errors in the server's log: {len(server.log)}")
        for one in (*loaded.errors, *questions.errors, *changes.errors, *server.log)[:10]:
            say(one)

        server = Server(settings.kb, model)
        async with client_of(server) as client:
            lost = before - await names(client)
            until = time.perf_counter() + WAIT
            while taken and time.perf_counter() < until:
                found = {uri for uri in await names(client) if "/last-" in uri}
                if len(found) == LAST:
                    break
                await asyncio.sleep(0.2)
            print(
                f"After kill -9: ready in {server.ready:.1f} s, {len(lost)} of {len(before):,} "
                f"documents lost, {len(found)} of {LAST} just taken in are there."
            )
        server.kill()


def main() -> None:
    """Print the tables."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--seconds", type=float, default=120.0)
    given.add_argument("--chunks", type=int, default=300)
    options = given.parse_args()
    random.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder), options.seconds, options.chunks))


if __name__ == "__main__":
    main()
