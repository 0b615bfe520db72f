"""A model on loopback that plays an agent: it searches once, then answers from what came back.

It speaks OpenAI's chat protocol, streamed and not. A request without tools is one to make a
follow-up self-contained, and gets `rewritten`.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@dataclass
class AgentModel:
    """`hang_in` is the answer (from 1) in which it falls silent, at once or, streamed, when
    `hang_after` of its pieces were sent (`says` are the pieces, with `{id}` for the chunk found);
    `refuses_tools` answers 400."""

    hang_in: int = 0
    hang_after: int = 0
    says: tuple[str, ...] = ()
    refuses_tools: bool = False
    rewritten: str = "When was the second pump of the Blue Bridge station replaced?"
    address: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    answers: int = 0
    hanging: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """The message that a request is answered with."""
        if not body.get("tools"):
            return {"role": "assistant", "content": self.rewritten}
        last = body["messages"][-1]
        if last["role"] != "tool":
            call = {
                "index": 0,
                "id": f"call{len(self.requests)}",
                "type": "function",
                "function": {
                    "name": "semantic_search",
                    "arguments": '{"query": "second pump replaced"}',
                },
            }
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        self.answers += 1
        found = re.search(r"\d+-\d+", json.dumps(last["content"]))
        cited = found.group(0) if found else "1-1"
        said = f"Answer {self.answers}: the second one was replaced in 2019 [{cited}]."
        if self.says:
            said = "".join(self.says).replace("{id}", cited)
        return {"role": "assistant", "content": said}


@contextmanager
def playing(model: AgentModel) -> Iterator[AgentModel]:
    """The model at `model.address`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model.requests.append(body)
            if model.refuses_tools and body.get("tools"):
                message = "this model does not support tools"
                self._whole(400, {"error": {"message": message, "type": "invalid_request_error"}})
                return
            message = model.reply(body)
            if model.hang_in and model.answers == model.hang_in:
                if model.hang_after:
                    self._some_pieces(message["content"])
                model.hanging.set()
                model.over.wait()
                return
            finish = "tool_calls" if message.get("tool_calls") else "stop"
            if body.get("stream"):
                self._pieces(message, finish)
            else:
                choice = {"index": 0, "message": message, "finish_reason": finish}
                self._whole(200, {**_frame("chat.completion"), "choices": [choice], "usage": USAGE})

        def _whole(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _pieces(self, message: dict[str, Any], finish: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            frame = _frame("chat.completion.chunk")
            for delta, reason in ((message, None), ({}, finish)):
                choice = {"index": 0, "delta": delta, "finish_reason": reason}
                self._piece({**frame, "choices": [choice]})
            self._piece({**frame, "choices": [], "usage": USAGE})
            self.wfile.write(b"data: [DONE]\n\n")

        def _some_pieces(self, content: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            cited = re.search(r"\d+-\d+", content)
            for said in model.says[: model.hang_after]:
                text = said.replace("{id}", cited.group(0) if cited else "")
                choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
                self._piece({**_frame("chat.completion.chunk"), "choices": [choice]})

        def _piece(self, value: dict[str, Any]) -> None:
            self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
            self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.address = f"http://127.0.0.1:{server.server_port}/v1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield model
    finally:
        model.over.set()
        server.shutdown()
        server.server_close()


def _frame(kind: str) -> dict[str, Any]:
    return {"id": "c1", "object": kind, "created": 1, "model": "scripted"}
