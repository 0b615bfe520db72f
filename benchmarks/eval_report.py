"""How long the report of a large run takes to open: `python -m benchmarks.eval_report RUN...`.

Reads real runs, repeats their questions under new ids until there are `--questions`, writes the
page and opens it from its file in headless Chromium, without a network. "Open" is from the call to
the moment at which the page has listed every question; the best, median and worst of `--times`.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentic_rag.evaluation.report.files import write_report
from agentic_rag.evaluation.report.systems import systems_of
from agentic_rag.evaluation.running.result_file import RESULTS, begin_run, read_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = [repeated(one, Path(folder) / one.name, given.questions) for one in given.runs]
        path = Path(folder) / "report.html"
        began = time.perf_counter()
        systems = systems_of(runs)
        scored = time.perf_counter()
        write_report(path, systems, "html")
        written = time.perf_counter()
        print(f"{given.questions:,} questions, {len(systems)} systems, ", end="")
        print(f"{path.stat().st_size / 1e6:.1f} MB")
        print(f"read and score runs   {scored - began:6.2f} s")
        print(f"write the page        {written - scored:6.2f} s")
        for name, seconds in in_chromium(path, given.times).items():
            told = f"{min(seconds):6.2f} {statistics.median(seconds):6.2f} {max(seconds):6.2f}"
            print(f"{name:20} {told} s")


def repeated(source: Path, target: Path, count: int) -> Path:
    """The run in `source` with its questions and results again and again, under new ids."""
    run = read_run(source)
    rounds = range(-(-count // len(run.questions)))
    questions = [
        one.model_copy(update={"qid": f"{one.qid} {turn}"})
        for turn in rounds
        for one in run.questions
    ][:count]
    kept = {one.qid for one in questions}
    begin_run(target, run.info, questions)
    with (target / RESULTS).open("w", encoding="utf-8") as file:
        for turn in rounds:
            for result in run.results:
                again = result.model_copy(update={"qid": f"{result.qid} {turn}"})
                if again.qid in kept:
                    file.write(again.model_dump_json() + "\n")
    return target


def in_chromium(path: Path, times: int) -> dict[str, list[float]]:
    """Seconds by what was done, for each time."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("There is no chromium on this system; install it.")
    taken: dict[str, list[float]] = {}

    def timed(name: str, do: Callable[[], Any]) -> None:
        began = time.perf_counter()
        do()
        taken.setdefault(name, []).append(time.perf_counter() - began)

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(times):
            page = browser.new_context(offline=True).new_page()

            def opened(page: Any = page) -> None:
                page.goto(path.as_uri())
                page.wait_for_selector("html[data-ready]")

            def searched(page: Any = page) -> None:
                page.locator("#search").fill("in no text at all")
                page.get_by_text("No question fits.").wait_for()

            def unfolded(page: Any = page) -> None:
                page.locator("#clear").click()
                page.locator(".question summary").first.click()
                page.locator(".event").first.wait_for()

            timed("open", opened)
            timed("search", searched)
            page.locator("#clear").click()
            page.locator("#questions").get_by_text("?").first.wait_for()
            page.locator("#in-traces").check()
            timed("search all traces", searched)
            timed("unfold a question", unfolded)
            page.context.close()
        browser.close()
    return taken


if __name__ == "__main__":
    main()
