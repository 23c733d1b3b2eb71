"""How each peer of `bench/peers` is installed, started, spoken to and asked once; their sources are unmodified.

A peer is spoken to over the interface that it documents for programs, with its own defaults: one text in, one text out.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from claudius.runtime.control import connect
from claudius.testing.alive import UNHURRIED
from sides import environment

MODEL, KEY = "claude-loopback", "sk-bench"
CLAUDIUS = Path(sys.executable).with_name("claudius")

Run = tuple[Sequence[str | Path], Mapping[str, str]]
"""A command and its environment."""


Say = Callable[[str], Awaitable[str]]
"""Say one thing, and wait for the answer."""


@asynccontextmanager
async def attached(socket: Path, conversation: str) -> AsyncIterator[Say]:
    """Attach to a daemon's socket as `claudius chat` does."""
    async with connect(socket) as connection:
        await connection.send({"op": "chat", "conversation": conversation, "stream": True})
        await connection.receive()

        async def say(text: str) -> str:
            await connection.send({"op": "say", "id": f"{conversation}-{os.urandom(6).hex()}", "text": text})
            while (frame := await connection.receive()) is not None:
                if frame.get("event") == "speech":
                    await connection.send({"op": "shown", "key": frame["key"]})
                    return str(frame["body"])
            raise RuntimeError("the daemon hung up")

        yield say


@dataclass(frozen=True, slots=True)
class Agent:
    """One peer: `place` is where it is installed, `home` is its own directory in this run, `url` is the model's."""

    name: str
    place: Path
    home: Path
    url: str
    port: int

    def version(self) -> Run:
        """Return the command that prints its version."""
        raise NotImplementedError

    def configure(self) -> None:
        """Write what it needs to know of the model."""

    def serve(self) -> Run | None:
        """Return the command of its long-lived process; None if it has none."""
        return None

    def once(self, text: str) -> Run:
        """Return the command that says one thing and prints the answer."""
        raise NotImplementedError

    async def is_ready(self) -> bool:
        """Return whether the long-lived process answers."""
        try:
            async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{self.port}{self.health}") as found:
                return found.status < 400
        except (aiohttp.ClientError, OSError):
            return False

    @property
    def health(self) -> str:
        """The path that answers once it is ready."""
        return "/health"

    @asynccontextmanager
    async def talk(self, conversation: str) -> AsyncIterator[Say]:
        """Open a conversation. Yields a coroutine function: a text in, the answer out."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(300)) as http:

            async def say(text: str) -> str:
                headers, body = self.request(conversation, text)
                address = f"http://127.0.0.1:{self.port}/v1/chat/completions"
                async with http.post(address, json=body, headers=headers) as answer:
                    found = await answer.text()
                    if answer.status != 200:
                        raise RuntimeError(f"{self.name}: {answer.status} {found[:300]}")
                    return str(json.loads(found)["choices"][0]["message"]["content"])

            yield say

    def request(self, conversation: str, text: str) -> tuple[dict[str, str], dict[str, Any]]:
        """Return headers and body of one message over chat completions, which most peers serve."""
        return {}, {"model": MODEL, "session_id": conversation, "messages": [{"role": "user", "content": text}]}


class Claudius(Agent):
    """This checkout, over the terminal's socket, as `claudius chat` speaks to it."""

    wire = "openai_compat"

    def version(self) -> Run:
        """Return `claudius --version`."""
        return [CLAUDIUS, "--version"], self._environment()

    def serve(self) -> Run:
        """Return `claudius daemon run`."""
        return [CLAUDIUS, "daemon", "run"], self._environment()

    def once(self, text: str) -> Run:
        """Return `claudius chat --once`: through the daemon where one runs."""
        return [CLAUDIUS, "chat", "--once", text], self._environment()

    def _environment(self) -> dict[str, str]:
        return (
            environment(self.home)
            | UNHURRIED
            | {
                "CLAUDIUS_HOME": str(self.home / "soul"),
                "CLAUDIUS_PROVIDERS": self.wire,
                "ANTHROPIC_API_KEY": KEY,
                "ANTHROPIC_BASE_URL": self.url,
                "CLAUDIUS_OPENAI_BASE_URL": f"{self.url}/v1",
                "CLAUDIUS_OPENAI_MODEL": MODEL,
                "CLAUDIUS_OPENAI_PROFILE": "full",
            }
        )

    @property
    def _socket(self) -> Path:
        return self.home / "soul" / "run" / "claudius.sock"

    async def is_ready(self) -> bool:
        """Return whether the socket answers."""
        try:
            async with connect(self._socket):
                return True
        except OSError:
            return False

    @asynccontextmanager
    async def talk(self, conversation: str) -> AsyncIterator[Say]:
        """Attach as a terminal does."""
        async with attached(self._socket, conversation) as say:
            yield say


class ClaudiusApi(Claudius):
    """The same over the Anthropic API's own library."""

    wire = "anthropic_api"


class Nanobot(Agent):
    """HKUDS/nanobot, by `nanobot serve`."""

    def version(self) -> Run:
        """Return `nanobot --version`."""
        return [self.place / "bin" / "nanobot", "--version"], environment(self.home)

    def configure(self) -> None:
        """Write ~/.nanobot/config.json."""
        (self.home / ".nanobot").mkdir(exist_ok=True)
        settings = {
            "agents": {"defaults": {"model": MODEL, "provider": "custom"}},
            "providers": {"custom": {"apiKey": KEY, "apiBase": f"{self.url}/v1"}},
        }
        (self.home / ".nanobot" / "config.json").write_text(json.dumps(settings), "utf-8")

    def serve(self) -> Run:
        """Return `nanobot serve`."""
        return [self.place / "bin" / "nanobot", "serve", "--port", str(self.port)], environment(self.home)

    def once(self, text: str) -> Run:
        """Return `nanobot agent -m`."""
        return [self.place / "bin" / "nanobot", "agent", "-m", text], environment(self.home)


class Hermes(Agent):
    """NousResearch/hermes-agent, by its gateway's server of chat completions."""

    def version(self) -> Run:
        """Return `hermes --version`."""
        return [self.place / "bin" / "hermes", "--version"], self._environment()

    def configure(self) -> None:
        """Write config.yaml."""
        (self.home / ".hermes").mkdir(exist_ok=True)
        model = {"default": MODEL, "provider": "custom", "base_url": f"{self.url}/v1", "api_key": KEY}
        (self.home / ".hermes" / "config.yaml").write_text(json.dumps({"model": model}), "utf-8")  # JSON is YAML

    def serve(self) -> Run:
        """Return `hermes gateway run`."""
        return [self.place / "bin" / "hermes", "gateway", "run"], self._environment()

    def once(self, text: str) -> Run:
        """Return `hermes -z`."""
        return [self.place / "bin" / "hermes", "-z", text], self._environment()

    def request(self, conversation: str, text: str) -> tuple[dict[str, str], dict[str, Any]]:
        """Return one message of a session that its server keeps."""
        headers = {"Authorization": f"Bearer {KEY}", "X-Hermes-Session-Id": conversation}
        return headers, {"model": MODEL, "messages": [{"role": "user", "content": text}]}

    def _environment(self) -> dict[str, str]:
        served = {"API_SERVER_ENABLED": "true", "API_SERVER_KEY": KEY, "API_SERVER_PORT": str(self.port)}
        return environment(self.home) | {"HERMES_HOME": str(self.home / ".hermes"), "OPENAI_API_KEY": KEY, **served}


class Llm(Agent):
    """simonw/llm, a command a turn: it has no long-lived process."""

    def version(self) -> Run:
        """Return `llm --version`."""
        return [self.place / "bin" / "llm", "--version"], self._environment()

    def configure(self) -> None:
        """Write extra-openai-models.yaml."""
        model = {"model_id": MODEL, "model_name": MODEL, "api_base": f"{self.url}/v1"}
        (self.home / "extra-openai-models.yaml").write_text(json.dumps([model]), "utf-8")

    def once(self, text: str) -> Run:
        """Return `llm -m`."""
        return [self.place / "bin" / "llm", "--key", KEY, "-m", MODEL, text], self._environment()

    @asynccontextmanager
    async def talk(self, conversation: str) -> AsyncIterator[Say]:  # noqa: ARG002 - it goes on with the newest one
        """Say the first line in a conversation of its own, and go on in it with `-c`."""
        more: list[str] = []

        async def say(text: str) -> str:
            argv, variables = self.once(text)
            command = [*map(str, argv[:-1]), *more, text]
            made = await asyncio.create_subprocess_exec(
                *command, env=dict(variables), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
            )
            said, _ = await made.communicate()
            more[:] = ["-c"]
            return said.decode()

        yield say

    def _environment(self) -> dict[str, str]:
        return environment(self.home) | {"LLM_USER_PATH": str(self.home)}


AGENTS: Mapping[str, type[Agent]] = {
    "Claudius": Claudius,
    "Claudius, Anthropic API": ClaudiusApi,
    "nanobot": Nanobot,
    "hermes": Hermes,
    "llm": Llm,
}
INSTALLED: Mapping[str, Sequence[str]] = {
    "nanobot": ("nanobot-ai[api]",),
    "hermes": ("hermes-agent",),
    "llm": ("llm",),
}
"""By the name of a peer from the Python index, what is installed for it."""


async def until_ready(agent: Agent, within_s: float = 120.0) -> None:
    """Wait until a peer answers. Raises: TimeoutError."""
    async with asyncio.timeout(within_s):
        while not await agent.is_ready():  # noqa: ASYNC110 - another process is asked
            await asyncio.sleep(0.01)
