"""`arag doctor`: do the configured parts work, and is the knowledge base sound?"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag.cli import exit_codes, streams
from agentic_rag.cli.options import AsJson, Kb, Model, Strategy, settings_for
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.doctor import Finding, Part

_MARK = {True: "ok", False: "FAILS", None: "-"}


def doctor(
    ctx: typer.Context,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Cure what can be cured: put rows in order and index damaged documents again.",
        ),
    ] = False,
    no_calls: Annotated[
        bool, typer.Option("--no-calls", help="Embed nothing and ask no model.")
    ] = False,
    model: Model = None,
    strategy: Strategy = None,
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """Try each configured part once and check the knowledge base; say what to do about each fault.

    One text is embedded and the chat model is asked for a few tokens: with a tool where the agent
    would answer, without one under `--strategy naive`. The knowledge base is only read, unless
    --fix is given.

    Example: `arag doctor --model ollama:qwen3 --strategy naive`
    """
    from agentic_rag.config import BadSettings, config_file
    from agentic_rag.doctor.knowledge_base import check_knowledge_base
    from agentic_rag.doctor.parts import failed_settings, failures, settings_part, with_findings
    from agentic_rag.doctor.parts import parts as tried

    parts: list[Part] = []
    failed: list[Finding] = []
    found: list[Finding] = []
    cured: list[str] = []
    not_cured: list[str] = []

    def take(part: "Part") -> None:
        failed.extend(failures([part]))
        if part.name == "knowledge base" and found:
            part = with_findings(part, len(found))
        parts.append(part)
        if not as_json:
            _print_part(part)

    try:
        settings = settings_for(ctx, kb, model=model, strategy=strategy)
        take(settings_part(config_file()))
    except (BadSettings, OSError) as error:  # OSError: the folder is gone, or may not be read
        take(failed_settings(error))
    else:
        for part in tried(settings, calls=not no_calls):
            if part.name == "knowledge base" and part.works:
                found = check_knowledge_base(settings.kb)
                if fix and found:
                    cured, not_cured = _fix(settings, found)
                    found = check_knowledge_base(settings.kb)
            take(part)
    findings = [*failed, *found]
    if as_json:
        streams.out_json(
            {
                "findings": [asdict(finding) for finding in findings],
                "parts": [asdict(part) for part in parts],
                "cured": cured,
                "not_cured": not_cured,
            }
        )
    else:
        _print_findings(found, sound=not findings)
    if findings:
        raise typer.Exit(exit_codes.SOME_FAILED)


def _fix(settings: "Settings", found: "list[Finding]") -> tuple[list[str], list[str]]:
    """What was cured, and what could not be and why; both are told on standard error too."""
    from agentic_rag.doctor.knowledge_base import repair
    from agentic_rag.doctor.wording import cure_of, said
    from agentic_rag.knowledge_base import KnowledgeBase
    from agentic_rag.knowledge_base.tables import reading

    cured: list[str] = []
    not_cured = [finding.message for finding in found if finding.code == "unreadable"]
    try:
        if not not_cured:  # every repair reads the tables
            store = KnowledgeBase.open(settings.kb, settings=settings, create=False)
            with reading(settings.kb):
                repaired = repair(store, found, on_wait=streams.say)
            cured, not_cured = list(repaired.done), list(repaired.failed)
    except AragError as error:
        not_cured = [f"{said(error)}. {cure_of(error, '')}".rstrip()]
    for line in cured:
        streams.say(line)
    for line in not_cured:
        streams.say(f"not cured: {line}")
    return cured, not_cured


def _print_part(part: "Part") -> None:
    took = f", {part.seconds:.1f} s" if part.seconds >= 0.05 else ""
    shown = ": ".join(filter(None, (part.value, part.detail)))
    streams.out(f"{_MARK[part.works]:<6} {part.name:<15} {streams.one_line(shown)}{took}")
    indent = " " * 23
    if part.why:
        streams.out(f"{indent}{streams.one_line(part.why)}")
    if part.works is False and part.cure:
        streams.out(f"{indent}→ {streams.one_line(part.cure)}")


def _print_findings(findings: "list[Finding]", *, sound: bool) -> None:
    if sound:
        streams.out("\nNothing is wrong.")
    elif findings:
        streams.out("\nThe knowledge base:")
    for number, finding in enumerate(findings, start=1):
        streams.out(f"{number}. {streams.one_line(finding.message)}")
        streams.out(f"   → {streams.one_line(finding.cure)}")
