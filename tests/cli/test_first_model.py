"""The first evening with a model, through the real command: what it cost, what failed, and who speaks plainly."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from case_rows import Row, rows
from driven import Machine
from lab.loopback.model import MODEL, ModelServer, Reply


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


def _typed(root: Path, server: ModelServer, *lines: tuple[str, str]) -> str:
    """Type lines into an open chat, each until some words of its answer are shown; return all that was shown."""
    machine = _machine(root, server, "anthropic_api", CLAUDIUS_MODEL_RETRIES="0")
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
