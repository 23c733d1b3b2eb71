"""What the first message would wait for is loaded beside the start; a whisper that is asked before waits for it."""

from __future__ import annotations

from pathlib import Path

from driven import Machine, reply
from lab.loopback.model import MODEL
from lab.loopback.model_families import Family
from lab.loopback.model_rows import RowServer, threaded
from networked import whisper

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
