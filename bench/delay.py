"""A way to a database server that takes longer: bytes are passed on after a while, in order, to its socket.

A side of its own, so that its CPU is not counted as anybody's. Bytes that are under way do not wait for one another.
"""

from __future__ import annotations

import queue
import socket
import threading
import time

from sides import serve

PIECE = 65_536


class Way:
    """Listens on a port of this machine."""

    def open(self, path: str, delay_s: float) -> int:
        """Pass everything on to the socket at `path`; what comes back arrives `delay_s` later. Returns the port."""
        listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, args=(listening, path, delay_s), daemon=True).start()
        port: int = listening.getsockname()[1]
        return port

    def _accept(self, listening: socket.socket, path: str, delay_s: float) -> None:
        while True:
            near, _ = listening.accept()
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            far = socket.socket(socket.AF_UNIX)
            far.connect(path)
            for source, target, wait_s in ((near, far, 0.0), (far, near, delay_s)):
                under_way: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                threading.Thread(target=self._take, args=(source, under_way, wait_s), daemon=True).start()
                threading.Thread(target=self._pass_on, args=(under_way, target), daemon=True).start()

    def _take(self, source: socket.socket, under_way: queue.SimpleQueue[tuple[float, bytes]], wait_s: float) -> None:
        piece = b"-"
        while piece:
            try:
                piece = source.recv(PIECE)
            except OSError:
                piece = b""
            under_way.put((time.perf_counter() + wait_s, piece))

    def _pass_on(self, under_way: queue.SimpleQueue[tuple[float, bytes]], target: socket.socket) -> None:
        while True:
            due_s, piece = under_way.get()
            left_s = due_s - time.perf_counter()
            if left_s > 0:
                time.sleep(left_s)
            try:
                if piece:
                    target.sendall(piece)
                    continue
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            return


if __name__ == "__main__":
    serve({"open": Way().open})
