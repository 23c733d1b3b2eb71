"""The first evening with a model: what it cost, what failed, and how a model at home is asked."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from case_rows import Row, rows
from driven import Machine
from lab.loopback.model import MODEL, ModelServer, Reply
from lab.loopback.model_families import Family


def _machine(root: Path, server: ModelServer, provider: str = "openai_compat", **more: str) -> Machine:
    keyed = {"ANTHROPIC_API_KEY": "sk-ant-canary", "ANTHROPIC_BASE_URL": server.url, "CLAUDIUS_ANTHROPIC_MODEL": MODEL}
    there = {"CLAUDIUS_OPENAI_BASE_URL": server.url + "/v1", "CLAUDIUS_OPENAI_MODEL": MODEL}
    return Machine(root, {"CLAUDIUS_PROVIDERS": provider, **keyed, **there, **more})


@pytest.mark.parametrize("row", rows("newcomer", "any", only="unknown-price"))
async def test_an_unknown_price_is_unknown_and_cache_writes_are_counted(tmp_path: Path, row: Row) -> None:
    """`usage` says so for each row and the total; what was written to the cache has its column, and is part of "in"."""
    async with ModelServer(default="<external_dialogue>Good day.</external_dialogue>") as server:
        machine = _machine(tmp_path, server, "anthropic_api")
        await asyncio.to_thread(machine.ok, "chat", "--once", "hello")
        written = server.asked[0].counted.write_5m + server.asked[0].counted.write_1h
        shown = (await asyncio.to_thread(machine.ok, *row.input["says"][0].removeprefix("$ claudius ").split())).stdout
        found = (await asyncio.to_thread(machine.ok, "usage", "--json")).json["total"]

    row.knows_only("must", "never")
    assert not [one for one in row.right["never"] if re.search(one, shown)]
    heads, *lines = [re.split(r"\s{2,}", line.strip()) for line in shown.splitlines()]
    assert [dict(zip(heads, line, strict=True))["cost"] for line in lines] == ["unknown", "unknown"]
    total = dict(zip(heads, lines[-1], strict=True))
    assert written > 0
    assert total["written"] == f"{written:,}"
    assert total["in"] == f"{found['input_tokens'] + found['cache_read_tokens'] + found['cache_write_tokens']:,}"
    assert (found["cost_usd"], found["unpriced"]) == (None, 1)


def _typed(root: Path, server: ModelServer, *lines: tuple[str, str], provider: str = "anthropic_api") -> str:
    """Type lines into an open chat, each until some words of its answer are shown; return all that was shown."""
    machine = _machine(root, server, provider, CLAUDIUS_MODEL_RETRIES="0")
    with machine.terminal("chat") as terminal:
        for line, answer in lines:
            terminal.until("you › ")
            terminal.type(line)
            terminal.until(answer)
        terminal.until("you › ")
        terminal.type("/quit")
        terminal.rest()
        return terminal.shown


@pytest.mark.parametrize(("status", "minutes"), [(402, 10), (429, 2)])
async def test_what_the_owner_mended_is_tried_by_their_next_message(tmp_path: Path, status: int, minutes: int) -> None:
    """The answer to the first says when the model is asked again, and that writing does it at once."""
    failing = Reply(fault="status", status=status, retry_after=61)
    async with ModelServer([failing], default="<external_dialogue>Paid, thanks.</external_dialogue>") as server:
        shown = await asyncio.to_thread(
            _typed, tmp_path, server, ("hello", "ask it at once"), ("hello again", "thanks.")
        )

    flat = " ".join(shown.split())
    assert "Good to meet you." in flat  # the first line that somebody hears is no apology
    assert f"asked again in {minutes} min, and at once when you write" in flat
    assert "write again, and I ask it at once" in flat
    assert flat.count("Paid, thanks.") == 1
    assert "asked again in" not in flat.partition("Paid, thanks.")[2]


async def test_what_is_tried_again_by_itself_is_not_told_as_a_failure(tmp_path: Path) -> None:
    """The cause is on the screen meanwhile, as what is being tried again; then the answer comes."""
    passing = Reply(fault="status", status=503)
    async with ModelServer([passing], default="<external_dialogue>Back again.</external_dialogue>") as server:
        shown = await asyncio.to_thread(_typed, tmp_path, server, ("hello", "Back again."))

    assert "trying again: anthropic_api:" in shown
    assert "failed:" not in shown
    assert "Back again." in shown


async def test_a_slow_model_says_how_long_it_reads(tmp_path: Path) -> None:
    """Not how much: nobody knows what that means."""
    row: Row = rows("newcomer", "model", only="slow")[0].values[0]
    (line,), (never,) = row.input["says"], row.right["never"]
    async with ModelServer(default="Good day to you.", family=Family("llama.cpp")) as server:
        shown = await asyncio.to_thread(_typed, tmp_path, server, (line, "to you."), provider="openai_compat")

    assert re.search(r"… reading, about \d+ s", shown)
    assert never not in shown


SMALL = "qwen2.5:7b"
REPLY = "<internal_monologue>They ask.</internal_monologue>\n<external_dialogue>Plane it.</external_dialogue>"
CONTEXT = 8192


async def test_local_l1_status_doctor_and_why_name_the_profile(tmp_path: Path) -> None:
    """L1, L4: before the first call the profile is known; after it the form and the context, as the server said."""
    async with ModelServer(default=REPLY, models=(SMALL,), family=Family("llama.cpp", context=CONTEXT)) as server:
        machine = _machine(tmp_path, server, CLAUDIUS_OPENAI_MODEL=SMALL)
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


def test_local_l1_without_a_model_at_home_the_profile_is_full(machine: Machine) -> None:
    """`status --json` names the profile of every voice; the words for a person stay as they are."""
    machine.ok("chat", "--once", "Who are you?")

    found = machine.run("status", "--json").json["provider"]

    assert (found["profile"], found["form"]) == ("full", "tags")
    assert "profile" not in machine.run("status").stdout
    assert json.loads(machine.ok("why", "--json").stdout)["profile"] == "full"


async def test_local_l9_the_owner_is_told_of_a_model_that_never_keeps_the_form(tmp_path: Path) -> None:
    """L9: a note beside the chat and a problem in `status` and `doctor` name the remedy; health does not fail for it."""
    async with ModelServer(default="Plane it.", models=(SMALL,), family=Family("llama.cpp")) as server:
        machine = _machine(tmp_path, server, CLAUDIUS_OPENAI_MODEL=SMALL)
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
