"""A daemon as its operator sees it: on loopback networks, with a webhook for alerts, asked in every way there is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from lab.loopback.discord import state as discord
from lab.loopback.discord.server import DiscordServer
from lab.loopback.listening import listen
from slack_daemon import SlackDaemon, slack_daemon

PATIENCE_S = 60.0
"""How long anything may take until all who report it agree."""
SLACK_OWNER, DISCORD_OWNER = "slack:T1:U1", f"discord:@me:{discord.ANA}"


@dataclass(slots=True)
class Operated:
    """One running daemon, and everything that an operator reads."""

    daemon: SlackDaemon
    discord: DiscordServer
    posted: list[dict[str, Any]] = field(default_factory=list)
    """What the webhook got, oldest first."""

    async def settled(self) -> None:
        """Wait until nothing is wrong, nor untold: at first no network is connected yet. Forget those alerts."""

        async def is_well() -> bool:
            """Return whether it is so."""
            states = [one["state"] for one in self.posted]
            try:
                return (await self.health())[0] == 200 and states.count("firing") == states.count("resolved")
            except aiohttp.ClientError:
                return False

        await self.until(is_well, "all is well at first")
        self.posted.clear()

    async def get(self, path: str) -> tuple[int, str]:
        """Return the status and body of a request to the control socket."""
        connector = aiohttp.UnixConnector(path=str(self.daemon.home.socket))
        async with aiohttp.ClientSession(connector=connector) as client, client.get(f"http://localhost{path}") as found:
            return found.status, await found.text()

    async def health(self) -> tuple[int, dict[str, Any]]:
        """Return what `/health` says."""
        connector = aiohttp.UnixConnector(path=str(self.daemon.home.socket))
        async with aiohttp.ClientSession(connector=connector) as client, client.get("http://localhost/health") as found:
            return found.status, await found.json()

    async def metrics(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """Return every sample of `/metrics`, by name and labels."""
        _, text = await self.get("/metrics")
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    async def problems(self) -> set[tuple[str, str]]:
        """Return the problems that the metrics name, by kind and subject."""
        return {
            (dict(labels)["kind"], dict(labels)["subject"])
            for (name, labels), value in (await self.metrics()).items()
            if name == "claudius_problem" and value
        }

    def alerts(self, kind: str, subject: str) -> list[str]:
        """Return the states of the alerts of one problem, oldest first."""
        return [one["state"] for one in self.posted if (one["kind"], one["subject"]) == (kind, subject)]

    async def failing(self) -> list[str]:
        """Return the names of the checks of `claudius doctor` that fail."""
        ran = await asyncio.to_thread(self.daemon.machine.run, "doctor", "--json")
        return [check["name"] for check in ran.json["checks"] if not check["ok"]]

    async def run(self, *args: str) -> None:
        """Run a command that must succeed."""
        await asyncio.to_thread(self.daemon.machine.ok, *args)

    async def until(self, is_so: Callable[[], Awaitable[object]], what: str) -> None:
        """Ask until something is so."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not await is_so():
                    await asyncio.sleep(0.05)
        except TimeoutError:
            seen = (await self.health(), await self.problems(), self.posted)
            raise AssertionError(f"not so in time: {what}\n{seen}\n{self.daemon.log()}") from None

    async def agree_on(self, kind: str, subject: str, *, check: str, times: int = 1) -> dict[str, Any]:
        """Wait until health, metrics, alerts and doctor all report a problem; return what health says."""

        async def is_seen() -> bool:
            """Return whether the first three see it."""
            status, _ = await self.health()
            seen = status == 503 and (kind, subject) in await self.problems()
            return seen and self.alerts(kind, subject).count("firing") == times

        await self.until(is_seen, f"{kind} {subject} is seen")
        assert check in await self.failing()
        status, document = await self.health()
        assert (status, document["ok"]) == (503, False)
        return document

    async def recovers(self, kind: str, subject: str, *, check: str, times: int = 1) -> None:
        """Wait until none of the four reports the problem any more."""

        async def is_over() -> bool:
            """Return whether the first three see it no more."""
            status, document = await self.health()
            over = status == 200 and document["ok"] and (kind, subject) not in await self.problems()
            return over and self.alerts(kind, subject).count("resolved") == times

        await self.until(is_over, f"{kind} {subject} is over")
        assert check not in await self.failing()


@asynccontextmanager
async def operated(root: Path, **settings: str) -> AsyncIterator[Operated]:
    """Run a daemon that hears Slack and Discord, with one owner on both; stop it in good order at the end."""
    posted: list[dict[str, Any]] = []

    async def take(request: web.Request) -> web.Response:
        """Take an alert."""
        posted.append(await request.json())
        return web.Response()

    hook = web.Application()
    runners: list[web.AppRunner] = []
    hook.router.add_post("/alerts", take)
    port = await listen(hook, "127.0.0.1", 0, runners)
    ours = {
        "CLAUDIUS_OWNERS": f"{SLACK_OWNER},{DISCORD_OWNER}",
        "CLAUDIUS_ALERTS_WEBHOOK": f"http://127.0.0.1:{port}/alerts",
        "CLAUDIUS_CLOCK_QUIET": "00:00-00:00",
        "CLAUDIUS_CLOCK_TIMEZONE": "UTC",
        "CLAUDIUS_MODEL_RETRIES": "0",
        "TEST_WATCHFUL": "1",
    }
    async with AsyncExitStack() as stack:
        for runner in runners:
            stack.push_async_callback(runner.cleanup)
        server = await stack.enter_async_context(DiscordServer())
        await server.world.set(identify_every_s=0.0)  # the tests' daemon does not wait between its attempts
        daemon = await stack.enter_async_context(slack_daemon(root, **ours))
        daemon.machine.env |= {
            "CLAUDIUS_DISCORD_API_URL": server.base_url,
            "CLAUDIUS_DISCORD_GATEWAY_URL": server.gateway_url,
            "CLAUDIUS_DISCORD_GUILDS": discord.GUILD,
            "DISCORD_TOKEN": discord.BOT_TOKEN,
            **settings,
        }
        made = Operated(daemon, server, posted)
        await daemon.start()
        await server.world.until_connected(1, within_s=PATIENCE_S)
        await made.settled()
        yield made
        await daemon.stop()
