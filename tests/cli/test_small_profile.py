"""How a model at home is asked stands in `status`, `doctor` and `why`; one that never keeps the form is told of."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from driven import Machine
from lab.loopback.model import ModelServer
from lab.loopback.model_families import Family

MODEL = "qwen2.5:7b"
REPLY = "<internal_monologue>They ask.</internal_monologue>\n<external_dialogue>Plane it.</external_dialogue>"
CONTEXT = 8192


def _machine(root: Path, server: ModelServer, **more: str) -> Machine:
    at_home = {"CLAUDIUS_PROVIDERS": "openai_compat", "CLAUDIUS_OPENAI_BASE_URL": server.url + "/v1"}
    return Machine(root, at_home | {"CLAUDIUS_OPENAI_MODEL": MODEL} | more)


async def test_local_l1_status_doctor_and_why_name_the_profile(tmp_path: Path) -> None:
    """L1, L4: before the first call the profile is known; after it the form and the context, as the server said."""
    async with ModelServer(default=REPLY, models=(MODEL,), family=Family("llama.cpp", context=CONTEXT)) as server:
        machine = _machine(tmp_path, server)
        before = await asyncio.to_thread(machine.run, "status", "--json")
        await asyncio.to_thread(machine.ok, "chat", "--once", "How do I smooth a board?")
        status = await asyncio.to_thread(machine.run, "status")
        after = await asyncio.to_thread(machine.run, "status", "--json")
        doctor = await asyncio.to_thread(machine.run, "doctor")
        live = await asyncio.to_thread(machine.run, "doctor", "--live")
        why = await asyncio.to_thread(machine.ok, "why")
        told = json.loads((await asyncio.to_thread(machine.ok, "why", "--json")).stdout)

    assert (before.json["provider"]["profile"], before.json["provider"]["form"]) == ("plain", None)
    assert {key: after.json["provider"][key] for key in ("profile", "form", "context_tokens")} == {
        "profile": "plain", "form": "grammar", "context_tokens": CONTEXT,
    }  # fmt: skip
    words = "(profile plain, its form held by a grammar, 8,192 tokens)"
    assert words in status.stdout
    assert "; no tools:" in status.stdout
    assert "; no tools:" in doctor.stdout
    assert f"voice: openai_compat {words}" in doctor.stdout
    assert f"answered {words}" in live.stdout
    assert "(profile plain, form: grammar)" in why.stdout
    assert (told["profile"], told["form"]) == ("plain", "grammar")


def test_local_l1_without_a_model_at_home_the_profile_is_full(tmp_path: Path) -> None:
    """`status --json` names the profile of every voice; the words for a person stay as they are."""
    machine = Machine(tmp_path)
    machine.ok("chat", "--once", "Who are you?")

    found = machine.run("status", "--json").json["provider"]

    assert (found["profile"], found["form"]) == ("full", "tags")
    assert "profile" not in machine.run("status").stdout
    assert json.loads(machine.ok("why", "--json").stdout)["profile"] == "full"


async def test_local_l9_the_owner_is_told_of_a_model_that_never_keeps_the_form(tmp_path: Path) -> None:
    """L9: a note beside the chat and a problem in `status` and `doctor` name the remedy; health does not fail for it."""
    async with ModelServer(default="Plane it.", models=(MODEL,), family=Family("llama.cpp")) as server:
        machine = _machine(tmp_path, server)
        await asyncio.to_thread(machine.ok, "chat", "--once", "How do I smooth a board?")
        kept = machine.home / "state" / "local_models.json"
        known = json.loads(kept.read_text("utf-8"))
        for facts in known.values():
            facts |= {"asked": 10, "kept": 0}
        kept.write_text(json.dumps(known), "utf-8")

        chat = await asyncio.to_thread(machine.ok, "chat", "--once", "And a table?")
        await asyncio.to_thread(machine.ok, "daemon", "start")
        status = await asyncio.to_thread(machine.ok, "status")
        doctor = await asyncio.to_thread(machine.run, "doctor")
        health = (await asyncio.to_thread(machine.ok, "status", "--json")).json["health"]
        await asyncio.to_thread(machine.run, "daemon", "stop")

    assert chat.stderr.count("kept the form in none of 10 replies") == 1
    assert "openai.profile" in chat.stderr
    assert "problem: model: this model kept the form in none of 10 replies" in status.stdout
    assert "its words alone" in status.stdout
    assert "kept the form in none of 10 replies" in doctor.stdout
    assert (health["ok"], [one["fails"] for one in health["problems"]]) == (True, [False])
