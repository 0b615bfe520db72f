"""A small Anthropic-shaped server on loopback: plays a script, refuses what Anthropic refuses."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Block = dict[str, Any]


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def thinking(said: str) -> Block:
    return {"type": "thinking", "thinking": said, "signature": "signed"}


def tool_use(call_id: str, name: str, arguments: Any) -> Block:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


@dataclass
class Script:
    turns: list[Sequence[Block]]
    address: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def complaint(body: dict[str, Any]) -> str | None:
    """What Anthropic would say of a request, None where it would take it."""
    waiting: list[str] = []
    uses_tools = False
    for message in body["messages"]:
        content = message["content"]
        blocks = [text(content)] if isinstance(content, str) else content
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            return "text content blocks must be non-empty"
        if message["role"] == "user":
            results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
            if results != waiting:
                return f"tool_use ids {waiting} were answered by {results}"
            waiting = []
        else:
            waiting = [b["id"] for b in blocks if b["type"] == "tool_use"]
        uses_tools = uses_tools or any(b["type"].startswith("tool_") for b in blocks)
    if uses_tools and not body.get("tools"):
        return "Requests which have tool_use or tool_result blocks must define tools"
    return None


@contextmanager
def serving(*turns: Sequence[Block]) -> Iterator[Script]:
    """A server that plays `turns`, the last one again and again."""
    script = Script(list(turns))

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.requests.append(body)
            if refusal := complaint(body):
                script.refused.append(refusal)
                error = {"type": "invalid_request_error", "message": refusal}
                self._send(400, "application/json", {"type": "error", "error": error})
                return
            blocks = script.turns[min(len(script.requests), len(script.turns)) - 1]
            calls = any(block["type"] == "tool_use" for block in blocks)
            whole = {
                "id": "m1",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": list(blocks),
                "stop_reason": "tool_use" if calls else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 100, "output_tokens": 20},
            }
            if not body.get("stream"):
                self._send(200, "application/json", whole)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for event in _events(whole):
                line = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                self.wfile.write(line.encode())

        def _send(self, status: int, kind: str, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _events(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    start = {**whole, "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(whole["content"]):
        empty, deltas = _pieces(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}}
    yield {"type": "message_stop"}


def _pieces(block: Block) -> tuple[Block, list[Block]]:
    match block["type"]:
        case "text":
            said = block["text"]
            parts = [said[at : at + 5] for at in range(0, len(said), 5)]
            return text(""), [{"type": "text_delta", "text": part} for part in parts]
        case "thinking":
            return {**block, "thinking": "", "signature": ""}, [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case _:
            sent = json.dumps(block["input"])
            parts = [sent[at : at + 6] for at in range(0, len(sent), 6)]
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": part} for part in parts
            ]
