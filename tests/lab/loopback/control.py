"""The control of a loopback server: its commands by name, in this process or across a port of its own."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import inspect
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
import msgspec
from aiohttp import web

Do = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Carries a command to a server; gives plain data."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Control:
    """The commands: every public coroutine method of the parts."""

    commands: Mapping[str, Callable[..., Awaitable[Any]]]

    @staticmethod
    def of(*parts: object) -> Control:
        """Gather the commands."""
        return Control(
            {
                name: getattr(part, name)
                for part in parts
                for name, _ in inspect.getmembers(type(part), inspect.iscoroutinefunction)
                if not name.startswith("_")
            }
        )

    async def do(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out one command; give plain data. Raises: LookupError: there is no such command."""
        command = self.commands.get(name)
        if command is None:
            raise LookupError(f"no command {name!r}; there are {', '.join(sorted(self.commands))}")
        return msgspec.to_builtins(await command(**arguments))

    async def answer(self, request: web.Request) -> web.Response:
        """Answer `POST /do/{name}`: 408 = it did not happen in time, 400 = it could not be done."""
        try:
            value = await self.do(request.match_info["name"], await request.json())
        except TimeoutError:
            return web.json_response({"error": "it did not happen in time"}, status=408)
        except (LookupError, TypeError, ValueError, msgspec.MsgspecError) as error:
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=400)
        return web.json_response({"value": value})


def known(kind: type[T], facts: Mapping[str, Any]) -> T:
    """Make a dataclass of facts that came over a control. Raises: ValueError: it has no such field, or not so."""
    fields = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]  # every kind is a dataclass
    if unknown := facts.keys() - fields:
        raise ValueError(f"unknown field {min(unknown)!r}; there are {', '.join(sorted(fields))}")
    return msgspec.convert(facts, kind)


@asynccontextmanager
async def reach(control_url: str) -> AsyncIterator[Do]:
    """Reach the control of a server in another process. Its commands raise TimeoutError and ValueError."""
    async with aiohttp.ClientSession() as session:

        async def do(name: str, arguments: Mapping[str, Any]) -> Any:
            async with session.post(f"{control_url}/do/{name}", data=json.dumps(arguments)) as response:
                found = await response.json()
            if response.status == 408:
                raise TimeoutError(f"{name}: {found['error']}")
            if response.status != 200:
                raise ValueError(f"{name}: {found['error']}")
            return found["value"]

        yield do


async def listen(app: web.Application, host: str, port: int, runners: list[web.AppRunner]) -> int:
    """Serve an application, whose runner joins `runners`; give the port, any free one for 0."""
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    runners.append(runner)
    await web.TCPSite(runner, host, port).start()
    return int(runner.addresses[0][1])


def run(what: str, server: Callable[[int, int], AbstractAsyncContextManager[Mapping[str, str]]]) -> None:
    """Read the command line and run a server until stopped; its first line on stdout, JSON, is its facts."""

    async def serve(port: int, control_port: int) -> None:
        async with server(port, control_port) as facts:
            sys.stdout.write(json.dumps(facts) + "\n")
            sys.stdout.flush()
            await asyncio.Event().wait()

    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--port", type=int, default=0, help="of the API and its sockets; 0 = any free one")
    parser.add_argument("--control-port", type=int, default=0, help="where tests drive the server")
    given = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(given.port, given.control_port))
