"""Shared by the tests of the network around a daemon: Slack, Discord and a model, a proxy, an authority of one's own."""

import asyncio
import http.client
import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claudius.home import Home
from claudius.reports.session import ask
from claudius.testing.alive import UNHURRIED
from driven import Machine, Ran, reply
from lab.loopback.discord import state as discord
from lab.loopback.discord.server import DiscordServer
from lab.loopback.model import MODEL, ModelServer
from lab.loopback.slack import state as slack
from lab.loopback.slack.server import SlackServer
from lab.way_out import Authority, ForwardProxy

QUICK = Path(__file__).with_name("quick_claudius.py")
PATIENCE_S = 60.0
"""How long a test waits for anything on a busy machine."""
SLACK, DISCORD, MODELS = "slack.example", "discord.example", "models.example"
"""Names that only the proxy resolves."""
SAID = "I am here."


@dataclass(slots=True)
class Network:
    """A daemon, and all that it reaches."""

    machine: Machine
    slack: SlackServer
    discord: DiscordServer
    model: ModelServer
    proxy: ForwardProxy
    authority: Authority | None = None
    process: asyncio.subprocess.Process | None = None
    fronts: list[asyncio.Server] = field(default_factory=list)

    @property
    def home(self) -> Home:
        """The daemon's home."""
        return Home(self.machine.home)

    async def serve(self, host: str, port: int) -> str:
        """Put a server where the proxy knows it by a name, or this machine as localhost; return its address."""
        if self.authority:
            front = await self.authority.in_front_of(port)
            self.fronts.append(front)
            port = front.sockets[0].getsockname()[1]
        self.proxy.routes = {**self.proxy.routes, host: port}
        scheme = "https" if self.authority else "http"
        return f"{scheme}://{host}" if host.endswith(".example") else f"{scheme}://{host}:{port}"

    async def start(self) -> None:
        """Start the daemon, and return once it says what it is doing."""
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(QUICK), "daemon", "run"),
            env=self.machine.environment({"TEST_WATCHFUL": "1"}),
            cwd=self.machine.user,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await self.until(self.status, "a running daemon")

    async def stop(self) -> None:
        """Kill the daemon."""
        if self.process and self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()

    async def status(self) -> dict[str, Any]:
        """Return what `claudius status` reads; empty before the daemon listens."""
        return await ask(self.home, "status") or {}

    async def adapter(self, name: str) -> dict[str, Any]:
        """Return what the status says of a network."""
        return next((one for one in (await self.status()).get("adapters", ()) if one["name"] == name), {})

    async def run(self, *args: str) -> Ran:
        """Run a command."""
        return await asyncio.to_thread(self.machine.run, *args)

    async def until(self, is_so: Callable[[], Awaitable[Any]], what: str) -> Any:
        """Ask until something is so, and return it."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not (found := await is_so()):
                    assert self.process is None or self.process.returncode is None, self.log()
                    await asyncio.sleep(0.05)
                return found
        except TimeoutError:
            raise AssertionError(f"not so in time: {what}\n{await self.status()}\n{self.log()}") from None

    async def connected(self, *names: str) -> None:
        """Wait until these networks are connected."""

        async def are() -> bool:
            """Return whether each is."""
            return all([(await self.adapter(name)).get("connected") for name in names])

        await self.until(are, f"{names} connected; the proxy saw {self.proxy.seen[-8:]}")

    async def say(self, name: str, text: str) -> None:
        """Write to the soul directly."""
        if name == "slack":
            await self.slack.world.say("D1", "U1", text)
        else:
            await self.discord.world.say(discord.DM, discord.ANA, text)

    async def answers(self, name: str, count: int) -> None:
        """Wait until so many answers stand in a network, and no more."""
        world = self.slack.world if name == "slack" else self.discord.world
        await world.until_visible(count, within_s=PATIENCE_S)
        assert len(await world.visible()) == count

    def log(self) -> str:
        """Return the end of the log, for a failure message."""
        return self.machine.log.read_text()[-5000:] if self.machine.log.exists() else "no log"


@asynccontextmanager
async def network(
    root: Path, env: Mapping[str, str], *, is_direct: bool = False, has_tls: bool = False, in_file: bool = False
) -> AsyncIterator[Network]:
    """Yield a daemon, not started yet, in the environment `env`; `in_file`: it stands in `.env` of the home.

    `is_direct`: the servers are this machine's; else only the proxy knows them. Kill the daemon at the end.
    """
    async with AsyncExitStack() as stack:
        slack_, discord_ = SlackServer(), DiscordServer()
        model = ModelServer(default=reply(SAID))
        proxy = ForwardProxy({})
        for server in (slack_, discord_, model, proxy):
            await stack.enter_async_context(server)  # type: ignore[arg-type] # four kinds of server
        await discord_.world.set(identify_every_s=0.0)
        names = (SLACK, DISCORD, MODELS, "hook.example", "git.example", "localhost")
        authority = Authority(root / "authority", names) if has_tls else None
        made = Network(Machine(root), slack_, discord_, model, proxy, authority)
        stack.callback(lambda: [front.close() for front in made.fronts])
        stack.push_async_callback(made.stop)
        given = {
            name: value.replace("{proxy}", str(proxy.port)).replace("{ca}", str(authority.file if authority else ""))
            for name, value in env.items()
        }
        slack_.service.url = await made.serve("localhost" if is_direct else SLACK, slack_.port)
        discord_.service.url = await made.serve("localhost" if is_direct else DISCORD, discord_.port)
        made.machine.env |= {
            "CLAUDIUS_SLACK_API_URL": slack_.base_url,
            "SLACK_BOT_TOKEN": slack.BOT_TOKEN,
            "SLACK_APP_TOKEN": slack.APP_TOKEN,
            "CLAUDIUS_DISCORD_API_URL": discord_.base_url,
            "CLAUDIUS_DISCORD_GATEWAY_URL": discord_.gateway_url,
            "CLAUDIUS_DISCORD_GUILDS": discord.GUILD,
            "CLAUDIUS_HTTP_TOKEN": "a-token-of-forty-characters-for-this-door",
            "DISCORD_TOKEN": discord.BOT_TOKEN,
            "CLAUDIUS_RUNTIME_MERGE_WHILE_BUSY": "0",
            **UNHURRIED,
            **({} if in_file else given),
        }
        made.home.create()
        if in_file:
            made.home.env_file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
            made.home.env_file.chmod(0o600)
        yield made


def asks_model(made: Network, provider: str, address: str) -> None:
    """Have the soul think with the loopback model, at this address."""
    made.machine.env |= {
        "CLAUDIUS_PROVIDERS": {"anthropic": "anthropic_api"}.get(provider, provider),
        "CLAUDIUS_MODEL_RETRIES": "0",
        "ANTHROPIC_API_KEY": "sk-ant-loopback",
        "ANTHROPIC_BASE_URL": address,
        "CLAUDIUS_OPENAI_BASE_URL": address if address.endswith("/v1") else f"{address}/v1",
        "CLAUDIUS_OPENAI_MODEL": MODEL,
        "CLAUDIUS_OPENAI_API_KEY": "loopback",
    }


class Socket(http.client.HTTPConnection):
    """HTTP over the control socket of a home."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def whisper(machine: Machine) -> tuple[int, dict[str, Any]]:
    """Ask the soul for a whisper, as another soul does."""
    asked = {"source": "kothar", "context": {"recentMessages": [{"role": "user", "content": "The bridge rusts."}]}}
    with closing(Socket(machine.home / "run" / "claudius.sock")) as client:
        client.request("POST", "/api/whisper", json.dumps(asked), {"Content-Type": "application/json"})
        answer = client.getresponse()
        return answer.status, json.loads(answer.read() or "{}")
