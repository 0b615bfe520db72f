"""A real server of an application, on loopback, in a thread."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from agentic_rag.server.run import listening


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """The application's address, as `http://127.0.0.1:1234`."""
    listener = listening("127.0.0.1", 0)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    for _ in range(500):
        if server.started or not thread.is_alive():
            break
        time.sleep(0.02)
    assert server.started
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
