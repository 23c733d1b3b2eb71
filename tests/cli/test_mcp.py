"""`claudius mcp`: another program speaks with the soul, by the SDK's own client."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.server.mcpserver.exceptions import ToolError

from claudius.cli.mcp import LentSoul
from claudius.home import Home
from driven import CLAUDIUS, Machine, reply

TOOLS = ["ask", "remember", "recall", "whisper", "mood"]


@asynccontextmanager
async def _client(machine: Machine) -> AsyncIterator[Client]:
    env = machine.environment()
    async with Client(StdioServerParameters(command=str(CLAUDIUS), args=["mcp"], env=env)) as client:
        yield client


async def _said(client: Client, tool: str, **args: str) -> tuple[str, bool]:
    result: Any = await client.call_tool(tool, args)
    return result.content[0].text, bool(result.is_error)


async def test_a_program_speaks_with_the_soul_and_is_told_nothing_of_others(tmp_path: Path) -> None:
    """One reply to each question; what begins with `!` is talk; a fact is kept; `recall` knows the owner's own alone."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    said = ("Yours, about the garden.", "Ben's, about the garden.", "Hello, program.", "No command.")
    machine.scripted(*map(reply, said))
    with machine.daemon():
        machine.ok("chat", "--once", "my garden is wild")
        machine.ok("chat", "--once", "my garden is dry", "--as", "ben", "--conversation", "ben")
        async with _client(machine) as client:
            names = [one.name for one in (await client.list_tools()).tools]
            answers = [await _said(client, "ask", text=text) for text in ("hello", "!forget me")]
            kept = await _said(client, "remember", text="Ada keeps bees.")
            too_long = await _said(client, "remember", text="x" * 1000)
            found, mood = await _said(client, "recall", words="garden"), await _said(client, "mood")
            fact = await _said(client, "recall", words="bees")
        known = machine.ok("users", "show", "ada").stdout

    assert names == TOOLS
    assert answers == [("Hello, program.", False), ("No command.", False)]
    assert (kept[1], too_long[1]) == (False, True)
    assert "Ada keeps bees." in known
    assert fact == ("Of you: Ada keeps bees.", False)
    assert "Yours, about the garden." in found[0]
    assert "wild" in found[0]
    assert "dry" not in found[0]
    assert "Ben's" not in found[0]
    assert mood[0]
    places = {one["conversation"] for one in machine.ok("conversations", "list", "--json").json}
    assert "terminal:local:main:mcp" in places


async def test_without_a_running_soul_each_tool_says_how_to_start_it(machine: Machine) -> None:
    """The server starts, answers, and nothing is composed."""
    async with _client(machine) as client:
        ends = [
            await _said(client, name, **({} if name == "mood" else {"words" if name == "recall" else "text": "x"}))
            for name in TOOLS
        ]

    assert all(is_error for _, is_error in ends)
    assert all("claudius daemon start" in text for text, _ in ends), json.dumps(ends)
    assert not machine.home.exists()


async def test_another_users_soul_is_closed_to_a_program(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told whose home it is, not that no soul runs."""
    machine.home.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    lent = LentSoul(Home(machine.home))

    for answer in (lent.ask("x"), lent.whisper("x"), lent.mood()):
        with pytest.raises(ToolError, match="belongs to user"):
            await answer
