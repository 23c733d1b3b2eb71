"""`claudius mcp`: the soul as a server of tools for other programs, over MCP on stdin and stdout.

It is a client of the running soul's control socket. Who speaks through it is a program: it gives no commands, and may
have nothing done but looks. Source: the tools design, section 11.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable

import click

from claudius.errors import ClaudiusError, TryAgain
from claudius.home import Home, shut
from claudius.reports.session import ask as request
from claudius.reports.session import say_once

CONVERSATION = "mcp"
REPLY_S = 300.0
NOT_RUNNING = "Claudius does not run: `claudius daemon start`"


@click.command()
def mcp() -> None:
    """Lend the soul to a program that speaks MCP: `claude mcp add claudius -- claudius mcp`."""
    try:
        from mcp.server.mcpserver import MCPServer
    except ModuleNotFoundError as error:
        raise ClaudiusError("this needs the extra `tools`: pip install 'claudius-daemon[tools]'") from error
    lent, about = LentSoul(Home.of(os.environ)), "A soul with memory and a mind of its own. Talk with it by `ask`."
    server = MCPServer("claudius", instructions=about, log_level="WARNING")
    for one in (lent.ask, lent.remember, lent.recall, lent.whisper, lent.mood):
        server.tool(structured_output=False)(one)
    asyncio.run(server.run_stdio_async())


class LentSoul:
    """What a program may do with the soul of a home; the docstrings are what it is told of each tool."""

    def __init__(self, home: Home) -> None:
        self._home = home

    async def ask(self, text: str) -> str:
        """Say something to the soul, as its owner's program, and return its reply."""
        return await self._told(say_once(self._home, CONVERSATION, text, REPLY_S))

    async def remember(self, text: str) -> str:
        """Have the soul keep a fact about its owner, in the third person; no model is asked."""
        return await self._told(self._of("told", text=text))

    async def recall(self, words: str) -> str:
        """Search what the owner and the soul said to each other alone."""
        return await self._told(self._of("recalled", words=words)) or "Nothing of it comes back."

    async def whisper(self, text: str) -> str:
        """Tell the soul what goes on in you, and return its whisper: one line, or nothing."""
        return await self._told(whispered(self._home, text)) or "It has nothing to whisper."

    async def mood(self) -> str:
        """Return the soul's mood, in a word."""
        return await self._told(self._of("mood"))

    async def _of(self, op: str, **words: str) -> str:
        frame = await request(self._home, op, **words)
        if frame is None:
            raise TryAgain(NOT_RUNNING)
        if frame.get("event") == "error":
            raise ClaudiusError(str(frame["message"]))
        return str(frame["text"])

    async def _told(self, answer: Awaitable[str]) -> str:
        """Return an answer; what keeps it from coming is told to the program in one line."""
        from mcp.server.mcpserver.exceptions import ToolError

        try:
            return await answer
        except (ClaudiusError, OSError) as error:
            why = error.message if isinstance(error, ClaudiusError) else NOT_RUNNING
            raise ToolError(shut(self._home.root) or why) from error


async def whispered(home: Home, text: str) -> str:
    """Return what the soul whispers to a program that tells what goes on in it. Raises: ClaudiusError, OSError."""
    import aiohttp

    asked = {"source": CONVERSATION, "context": {"recent_monologue": text}}
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(home.socket))) as http,
        http.post("http://localhost/api/whisper", json=asked, timeout=aiohttp.ClientTimeout(REPLY_S)) as answer,
    ):
        if answer.status == 204:
            return ""
        if answer.status != 200:
            raise TryAgain(f"not now: it may whisper again later ({answer.status})")
        return str((await answer.json())["whisper"])
