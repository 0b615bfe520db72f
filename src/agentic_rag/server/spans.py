"""OpenTelemetry spans of a question: one for it, one for each step and each call of a tool.

Spans are made where an exporter is configured, by the variables that OpenTelemetry defines
(https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/) or by the
program that runs the server. Texts of questions and documents are not in them.
"""

import os
import time
from typing import TYPE_CHECKING, Any

from agentic_rag.strategies.events import (
    Event,
    RunFailed,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolCalled,
    ToolReturned,
)

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_EXPORTERS = "OTEL_TRACES_EXPORTER"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_SHIPPED = {"otlp": "otlp_proto_http"}  # what the specification's names are called as packages


def configure() -> str:
    """Set OpenTelemetry up as the environment says, and say in a sentence what is missing for it;
    "" where nothing is wanted or all is there."""
    named = os.environ.get(_EXPORTERS) or ("otlp" if any(map(os.environ.get, _ENDPOINTS)) else "")
    wanted = [name.strip() for name in named.split(",") if name.strip() not in ("", "none")]
    if not wanted or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ""
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
    except ImportError:
        return "Spans are wanted, but opentelemetry-sdk is not installed; install it for them."
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return ""  # whoever runs this server has done it
    os.environ.setdefault("OTEL_SERVICE_NAME", "agentic-rag")
    provider = TracerProvider()
    for name in wanted:
        if said := _export(provider, name):
            return said
    trace.set_tracer_provider(provider)
    return ""


def _export(provider: Any, name: str) -> str:
    from importlib.metadata import entry_points

    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        ConsoleSpanExporter,
        SimpleSpanProcessor,
    )

    if name == "console":
        import sys

        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr)))
        return ""
    found = entry_points(group="opentelemetry_traces_exporter")
    known = [one for one in found if one.name in (name, _SHIPPED.get(name, name))]
    if not known:
        package = "opentelemetry-exporter-otlp" if name.startswith("otlp") else "its package"
        return f"Spans are wanted for {name}, which is not installed; install {package} for them."
    provider.add_span_processor(BatchSpanProcessor(known[0].load()()))
    return ""


class Spans:
    """The spans of one question, made from its events."""

    def __init__(self, question: str) -> None:
        try:
            from opentelemetry import trace
        except ImportError:  # another library's dependency, not ours
            self._tracer = None
            return
        self._trace = trace
        self._tracer = trace.get_tracer("agentic_rag")
        self._question = self._tracer.start_span("question")
        self._question.set_attribute("arag.question.characters", len(question))
        self._began = time.time()
        self._open: dict[str, Span] = {}

    def take(self, event: Event) -> None:
        """Begin or end what the event says."""
        if self._tracer is None:
            return
        match event:
            case RunStarted():
                self._began = time.time() - event.seconds
                self._question.set_attribute("arag.strategy", event.strategy)
                self._question.set_attribute("arag.model", event.model)
            case StepStarted():
                self._begin(event.step, event.name, event.parent, event.seconds)
            case StepFinished():
                self._end(event.step, event)
            case ToolCalled():
                self._begin(event.call_id, event.name, event.step, event.seconds)
            case ToolReturned():
                self._end(event.call_id, event)
            case RunFinished():
                usage = event.answer.usage
                self._question.set_attribute("arag.status", event.answer.status)
                self._question.set_attribute("gen_ai.usage.input_tokens", usage.input_tokens)
                self._question.set_attribute("gen_ai.usage.output_tokens", usage.output_tokens)
            case RunFailed():
                self._question.set_attribute("arag.status", "failed")
                self._fail(self._question, event.code)

    def end(self) -> None:
        """End whatever is still open."""
        if self._tracer is None:
            return
        for span in (*reversed(self._open.values()), self._question):
            span.end()
        self._open.clear()

    def _begin(self, key: str, name: str, parent: str | None, seconds: float) -> None:
        assert self._tracer is not None
        above = self._open.get(parent or "", self._question)
        context = self._trace.set_span_in_context(above)
        self._open[key] = self._tracer.start_span(name, context, start_time=self._at(seconds))

    def _end(self, key: str, event: StepFinished | ToolReturned) -> None:
        span = self._open.pop(key, None)
        if span is None:
            return
        span.set_attribute("arag.hits", len(event.hits))
        span.set_attribute("arag.retrieved_tokens", event.retrieved_tokens)
        if isinstance(event, StepFinished):
            span.set_attribute("gen_ai.usage.input_tokens", event.input_tokens)
            span.set_attribute("gen_ai.usage.output_tokens", event.output_tokens)
        if event.error:
            self._fail(span, "failed")
        span.end(self._at(event.seconds))

    def _fail(self, span: "Span", code: str) -> None:
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, code))

    def _at(self, seconds: float) -> int:
        """When, in nanoseconds since 1970, an event of so many seconds into the question was."""
        return int((self._began + seconds) * 1e9)
