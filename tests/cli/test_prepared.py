"""What is loaded beside the start, so that nobody waits: the first message's needs, and the search by meaning."""

import asyncio
import json
from pathlib import Path
from typing import Any

from driven import Machine, reply, until
from lab.loopback.model import MODEL, ModelServer
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


EMBEDDER = "qwen2.5:32b"
REPLY = "<internal_monologue>They ask.</internal_monologue>\n<external_dialogue>I see.</external_dialogue>"
SAID = "Ich bin gegen Walnüsse allergisch."


def _recall(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = machine.run("status", "--json").json["recall"] or {}
    return found


async def test_memory_f2_f6_a_daemon_finds_by_meaning_and_status_says_how_far(tmp_path: Path) -> None:
    """F2, F6: a German sentence stands in the prompt of an English question elsewhere; with `off`, words alone."""
    async with ModelServer(default=REPLY, models=(EMBEDDER,)) as server:
        at_home = {"CLAUDIUS_PROVIDERS": "openai_compat", "CLAUDIUS_OPENAI_BASE_URL": server.url + "/v1"}
        machine = Machine(tmp_path, at_home | {"CLAUDIUS_OPENAI_MODEL": EMBEDDER, "CLAUDIUS_RECALL_EMBEDDER": "auto"})

        def lived() -> tuple[dict[str, Any], str]:
            """Return the status and the prompt after a life in a daemon."""
            with machine.daemon() as pid:
                machine.ok("chat", "--once", SAID, "--conversation", "one")
                until(pid, lambda: _recall(machine).get("done") == 1)
                told = _recall(machine), machine.run("status").stdout
                machine.ok("chat", "--once", "What nuts must I avoid?", "--conversation", "two")
            return told

        recall, words = await asyncio.to_thread(lived)
        asked = json.dumps(server.calls[-1].body, ensure_ascii=False)
        off = await asyncio.to_thread(machine.run, "status", "--json", env={"CLAUDIUS_RECALL_EMBEDDER": "off"})

    assert recall == {"embedder": "use-multilingual-3", "done": 1, "total": 1, "is_off": False}
    assert "memory: found by meaning, 1 of 1 messages so far" in words
    assert SAID in asked
    assert off.json["recall"] is None
