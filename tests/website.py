"""A small web site on loopback, with pages that behave and pages that do not."""

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = (
    "<html><head><title>泵站手册</title></head><body><nav><a href='/a'>Home</a><a>Products</a>"
    "</nav><article><h1>泵站手册</h1><h2>维护</h2>"
    + "<p>蓝桥泵站每季度检修一次，检修由值班工程师负责，记录保存三年。</p>"
    * 5
    + "<table><tr><th>部件</th><th>周期</th></tr><tr><td>叶轮</td><td>半年</td></tr></table>"
    "</article><footer>Cookie settings · Imprint</footer></body></html>"
).encode()


class _Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        getattr(self, f"_{self.path.strip('/').partition('/')[0].partition('?')[0]}")()

    def _send(self, data: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _page(self) -> None:
        self._send(PAGE, Content_Type="text/html; charset=utf-8")

    def _gbk(self) -> None:
        data = "<html><body><p>蓝桥泵站在河的北岸。</p></body></html>".encode("gbk")
        self._send(data, Content_Type="text/html; charset=gbk")

    def _missing(self) -> None:
        self._send(b"gone", 404)

    def _secret(self) -> None:
        self._send(b"no", 403)

    def _away(self) -> None:
        port = self.server.server_address[1]
        self._send(b"", 302, Location=f"http://127.0.0.2:{port}/page")

    def _near(self) -> None:
        self._send(b"", 301, Location="/page")

    def _loop(self) -> None:
        self._send(b"", 302, Location="/loop")

    def _file(self) -> None:
        self._send(b"", 302, Location="file:///etc/hostname")

    def _bomb(self) -> None:
        data = gzip.compress(b"\0" * 50_000_000)
        self._send(data, Content_Encoding="gzip", Content_Type="text/plain")

    def _slow(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        for _ in range(60):
            self.wfile.write(b"x")
            self.wfile.flush()
            time.sleep(0.2)

    def _busy(self) -> None:
        if len(self.asked) == 1:
            self._send(b"", 429, Retry_After="1")
        else:
            self._page()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def website() -> Iterator[tuple[str, list[str]]]:
    """Its address, and the list of the paths asked for."""
    asked: list[str] = []
    handler = type("Pages", (_Pages,), {"asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
