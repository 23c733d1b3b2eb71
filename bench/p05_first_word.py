"""P5: the time from the question to the first character that a listener sees: over the terminal's socket, and raw.

The same loopback model at 80 tokens/s with 0.5 s to the first; 80 of 240 tokens are monologue. All clients are in this
process: of the control socket (a daemon that streams, and one that posts when it is done) and of the model itself.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

import script
from anchors.wire import first_character
from claudius.prompt import Prompt
from command import Bench, alone
from figures import Beside, Figure, bound
from loopback import model, paced
from sides import alternate, environment

HERE = Path(__file__).resolve().parent
WIRE = bound("P5.wire")
POSTED = bound("P5.posted")
LIMIT_S = 60.0


@dataclass(slots=True)
class Listener:
    """A person at the terminal of one daemon."""

    frames: Any
    socket: socket.socket

    def ask(self, number: int) -> float:
        """Say something. Returns the seconds until the first character is seen. The oracle: one whole answer."""
        said = str(uuid4())
        started, seen_s, shown = perf_counter(), 0.0, ""
        self._send({"op": "say", "id": said, "text": script.message(number)})
        while True:
            frame = json.loads(self.frames.readline())
            words = frame.get("text", "") if frame["event"] == "delta" else frame.get("body", "")
            if words.strip() and not seen_s:
                seen_s = perf_counter() - started
            if frame["event"] == "delta":
                shown += words
            elif frame["event"] == "speech":
                assert frame["answers"] == [f"terminal:{said}"], frame
                assert frame["body"] == script.spoken(1), frame
                assert frame["body"].startswith(shown), frame
                self._send({"op": "shown", "key": frame["key"]})
                return seen_s

    def _send(self, frame: dict[str, Any]) -> None:
        self.socket.sendall(json.dumps(frame).encode() + b"\n")


@contextmanager
def listening(root: Path, url: str, *, streams: bool) -> Iterator[Listener]:
    """Wake a daemon whose model is at `url`, and listen to it."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "config.toml").write_text(f"[pipeline]\nstream = {['terminal'] if streams else []}\n", "utf-8")
    more = {"ANTHROPIC_API_KEY": "bench", "ANTHROPIC_BASE_URL": url, "CLAUDIUS_PROVIDERS": "anthropic_api"}
    with (root / "awake.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, HERE / "awake.py", root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment(root) | more,
        )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"awake\n", (root / "awake.log").read_text("utf-8")[-2000:]
        with socket.socket(socket.AF_UNIX) as client, client.makefile("r") as frames:
            client.settimeout(LIMIT_S)
            client.connect(str(root / "run" / "claudius.sock"))
            client.sendall(b'{"op": "chat", "conversation": "bench", "as": "", "stream": true}\n')
            assert json.loads(frames.readline())["event"] == "attached"
            yield Listener(frames, client)
        process.stdin.close()
        process.wait(LIMIT_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


def measure(bench: Bench) -> Iterator[Figure]:
    """Alternate a streaming daemon, a posting one, and the raw socket."""
    reply = script.plain_reply(1)
    with ExitStack() as stack:
        url = stack.enter_context(model(bench.home("model"), [paced(reply)]))
        streaming = stack.enter_context(listening(bench.home("s"), url, streams=True))
        posting = stack.enter_context(listening(bench.home("p"), url, streams=False))
        body = _body(Prompt("You are a voice.", (), script.message(1)))
        asked = iter(range(1, 10_000))
        found = alternate(
            1 if bench.is_quick else bench.rounds,
            {
                "ours": lambda: streaming.ask(next(asked)),
                "wire": lambda: first_character(url, body),
                "posted": lambda: posting.ask(next(asked)),
            },
        )
    yield Figure(
        id="P5",
        name="first visible character",
        unit="s",
        samples=found["ours"],
        beside=(
            Beside(name="wire", bound=WIRE, samples=found["wire"]),
            Beside(name="ourselves, one final post", bound=POSTED, samples=found["posted"]),
        ),
        note="through the control socket; each message answered once, each stream the beginning of its reply",
    )


def _body(prompt: Prompt) -> dict[str, Any]:
    return {
        "model": "claude-loopback",
        "max_tokens": 4096,
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.tail}],
    }


if __name__ == "__main__":
    alone(__file__)
