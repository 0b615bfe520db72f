"""What the server counts, for Prometheus (https://prometheus.io/docs/instrumenting/).

Labels have few values: the route's pattern and never the path, the strategy and never the model.
"""

from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

if TYPE_CHECKING:
    from agentic_rag.server.question_gate import QuestionGate
    from agentic_rag.strategies.answer import Answer

_REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_QUESTION_SECONDS = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)


class Counts:
    """The counters of one server, in a registry of their own."""

    def __init__(self, gate: "QuestionGate") -> None:
        self.registry = CollectorRegistry()
        PlatformCollector(self.registry)
        ProcessCollector(registry=self.registry)
        self._requests = Histogram(
            "arag_request_seconds",
            "Time to the end of the response",
            ["method", "route", "status"],
            buckets=_REQUEST_SECONDS,
            registry=self.registry,
        )
        self._questions = Histogram(
            "arag_question_seconds",
            "Time to the answer",
            ["strategy", "status"],
            buckets=_QUESTION_SECONDS,
            registry=self.registry,
        )
        self._tokens = Counter(
            "arag_tokens", "Tokens of questions", ["kind"], registry=self.registry
        )
        self._cost = Counter(
            "arag_cost_dollars", "US dollars, where prices are known", registry=self.registry
        )
        running = Gauge("arag_questions_running", "Being answered now", registry=self.registry)
        running.set_function(lambda: gate.running)
        waiting = Gauge("arag_questions_waiting", "In the queue now", registry=self.registry)
        waiting.set_function(lambda: gate.waiting)
        self._documents = Gauge(
            "arag_documents", "In the knowledge base", ["status"], registry=self.registry
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).observe(seconds)

    def question(self, answer: "Answer") -> None:
        """Count a question that ended, well or not."""
        self._questions.labels(answer.strategy, answer.status).observe(answer.seconds)
        usage = answer.usage
        self._tokens.labels("input").inc(usage.input_tokens)
        self._tokens.labels("output").inc(usage.output_tokens)
        self._tokens.labels("retrieved").inc(usage.retrieved_tokens)
        self._cost.inc(usage.cost or 0.0)

    def documents(self, by_status: dict[str, int]) -> None:
        """Note how many documents there are now of each status."""
        for status, count in by_status.items():
            self._documents.labels(status).set(count)

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)
