"""A daemon with the extra `recall` finds what was said in another language, and `status` says how far it is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from driven import Machine, until
from lab.loopback.model import ModelServer

MODEL = "qwen2.5:32b"
REPLY = "<internal_monologue>They ask.</internal_monologue>\n<external_dialogue>I see.</external_dialogue>"
SAID = "Ich bin gegen Walnüsse allergisch."


def _recall(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = machine.run("status", "--json").json["recall"] or {}
    return found


async def test_memory_f2_f6_a_daemon_finds_by_meaning_and_status_says_how_far(tmp_path: Path) -> None:
    """F2, F6: a German sentence stands in the prompt of an English question elsewhere; with `off`, words alone."""
    async with ModelServer(default=REPLY, models=(MODEL,)) as server:
        at_home = {"CLAUDIUS_PROVIDERS": "openai_compat", "CLAUDIUS_OPENAI_BASE_URL": server.url + "/v1"}
        machine = Machine(tmp_path, at_home | {"CLAUDIUS_OPENAI_MODEL": MODEL, "CLAUDIUS_RECALL_EMBEDDER": "auto"})

        def lived() -> tuple[dict[str, Any], str]:
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
