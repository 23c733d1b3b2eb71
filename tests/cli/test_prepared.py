"""What the first message would wait for is loaded beside the start; a whisper that is asked before waits for it."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

from driven import Machine, reply
from lab.loopback.model import MODEL
from lab.loopback.model_families import Family
from lab.loopback.model_rows import RowServer, threaded

SLOW = """
import importlib.abc, sys, time

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "anthropic.resources.messages":
            sys.meta_path.remove(self)
            time.sleep(6)

sys.meta_path.insert(0, Slow())
"""
"""A machine on which the library of the provider takes longer to import than a whisper may take to be thought."""


class Socket(http.client.HTTPConnection):
    """HTTP over the control socket of a home."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def whisper(machine: Machine) -> tuple[int, dict[str, Any]]:
    """Ask the soul for a whisper, as another soul does."""
    asked = {"source": "kothar", "context": {"recentMessages": [{"role": "user", "content": "The bridge rusts."}]}}
    with closing(Socket(machine.home / "run" / "claudius.sock")) as client:
        client.request("POST", "/api/whisper", json.dumps(asked), {"Content-Type": "application/json"})
        answer = client.getresponse()
        return answer.status, json.loads(answer.read() or "{}")


def test_a_server_at_home_is_asked_what_it_can_before_anybody_speaks(tmp_path: Path) -> None:
    """The provider is made ready after the start, without a message, and the log says so."""
    server = RowServer(default=reply("Well."), family=Family("llama.cpp"))
    with threaded(server):
        at_home = {"CLAUDIUS_PROVIDERS": "openai_compat", "CLAUDIUS_OPENAI_BASE_URL": server.url + "/v1"}
        machine = Machine(tmp_path, at_home | {"CLAUDIUS_OPENAI_MODEL": MODEL})
        with machine.daemon():
            machine.until_logged("the provider is ready")

    assert "/props" in [call.path for call in server.calls]
    assert not server.asked


def test_a_whisper_waits(tmp_path: Path) -> None:
    """Asked the moment the daemon is ready, it is answered, though the provider's library is still being imported."""
    server = RowServer(default="They need assurance, not answers.")
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "sitecustomize.py").write_text(SLOW)
    with threaded(server):
        hosted = {"CLAUDIUS_PROVIDERS": "anthropic_api", "ANTHROPIC_API_KEY": "sk-ant-canary"}
        slow = {"ANTHROPIC_BASE_URL": server.url, "PYTHONPATH": str(tmp_path / "slow")}
        machine = Machine(tmp_path / "machine", hosted | slow)
        with machine.daemon():
            status, answer = whisper(machine)

    assert (status, answer["whisper"]) == (200, "They need assurance, not answers.")
