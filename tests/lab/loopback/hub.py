"""A hub of model files on loopback, as huggingface_hub asks one: a HEAD for size and checksum, then the file."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hub:
    """What the hub holds, how it fails, and what it was asked."""

    def __init__(self, content: bytes) -> None:
        self.content, self.url = content, ""
        self.checksum = hashlib.sha256(content).hexdigest()
        self.size = len(content)
        """The size that it tells."""
        self.status, self.says = 200, ""
        self.stall_at = 0
        """After so many bytes of a download nothing more comes; 0 = everything comes."""
        self.cut_at = 0
        """After so many bytes the first download breaks off."""
        self.stalled, self.go_on = threading.Event(), threading.Event()
        self.ranges: list[str] = []
        """The Range header of each download, empty where there was none."""


@contextmanager
def serving_hub(hub: Hub) -> Iterator[Hub]:
    """Serve a hub for a block, and name its address in `url`."""

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(is_asked_for_bytes=False)

        def do_GET(self) -> None:
            self._answer(is_asked_for_bytes=True)

        def _answer(self, *, is_asked_for_bytes: bool) -> None:
            asked = self.headers.get("Range", "")
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
            if is_asked_for_bytes:
                hub.ranges.append(asked)
            piece = hub.content[start:] if hub.status == 200 else b""
            self.send_response(206 if asked and hub.status == 200 else hub.status)
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
            self.send_header("Content-Length", str(len(piece)))
            self.send_header("X-Error-Message", hub.says)
            self.send_header("X-Linked-Etag", f'"{hub.checksum}"')
            self.send_header("X-Linked-Size", str(hub.size))
            self.send_header("X-Repo-Commit", "c" * 40)
            self.end_headers()
            if not is_asked_for_bytes:
                return
            most = hub.stall_at or hub.cut_at or len(piece)
            self.wfile.write(piece[:most])
            if hub.stall_at:
                hub.stalled.set()
                hub.go_on.wait()
            if most < len(piece):
                hub.cut_at, self.close_connection = 0, True

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        hub.go_on.set()
        server.shutdown()
        server.server_close()
