"""Shared by the fault tests over Slack: the daemon as a process, a Slack in the test's own loop, and the oracle."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from claudius.home import Home
from claudius.memory.sqlite import SqliteRecords
from claudius.testing.alive import UNHURRIED
from driven import Machine
from lab.loopback.slack.judged import as_world
from lab.loopback.slack.records import Entry
from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import APP_TOKEN, BOT_TOKEN, BOT_USER
from lab.loopback.slack.world import SlackWorld
from lab.oracle import judge

QUICK = Path(__file__).with_name("quick_claudius.py")
PATIENCE_S = 120.0
"""How long a test waits for anything on a busy machine."""
MENTION = f"<@{BOT_USER}>"


def is_owed(entry: Entry) -> bool:
    """Return whether a post is owed an answer: a DM, a mention, or a post in a thread."""
    return entry.channel.startswith("D") or MENTION in entry.text or bool(entry.thread_ts)


@dataclass(slots=True)
class SlackDaemon:
    """`claudius daemon run` in its own home, connected to `server`."""

    machine: Machine
    server: SlackServer
    process: asyncio.subprocess.Process | None = None
    before: tuple[str, ...] = ()
    """A command that runs the daemon, such as a tracer."""
    codes: list[int] = field(default_factory=list)
    """How each process ended, oldest first."""

    @property
    def slack(self) -> SlackWorld:
        """The people of this Slack."""
        return self.server.world

    @property
    def home(self) -> Home:
        """The daemon's home."""
        return Home(self.machine.home)

    @property
    def stderr(self) -> Path:
        """What the daemon's processes print there."""
        return self.machine.root / "stderr"

    async def start(self, *, is_heard: bool = True, env: Mapping[str, str] | None = None) -> None:
        """Start the daemon; return once it listens. Clears the record of crashes, so a test may kill it many times."""
        self.home.starts.unlink(missing_ok=True)
        opened = self.server.service.sockets.opened
        with self.stderr.open("ab") as printed:
            self.process = await asyncio.create_subprocess_exec(
                *self.before,
                sys.executable,
                str(QUICK),
                "daemon",
                "run",
                env=self.machine.environment({"CLAUDIUS_RUNTIME_MERGE_WHILE_BUSY": "0", **(env or {})}),
                cwd=self.machine.user,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=printed,
            )
        if is_heard:
            await self._listening(opened + 1)

    async def _listening(self, opened: int) -> None:
        assert self.process
        connected = asyncio.create_task(self.slack.until_connected(1, opened=opened, within_s=PATIENCE_S))
        ended = asyncio.create_task(self.process.wait())
        await asyncio.wait((connected, ended), return_when=asyncio.FIRST_COMPLETED)
        assert not ended.done(), self.log()
        ended.cancel()
        await connected

    async def kill(self) -> None:
        """Kill the daemon, as a power cut would."""
        if self.process and self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.kill()
        await self.ended()

    async def stop(self) -> None:
        """Stop the daemon, and check that it exits cleanly."""
        assert self.process
        if self.process.returncode is None:
            self.process.terminate()
        assert await self.ended() == 0, self.log()

    async def ended(self) -> int:
        """Wait until the daemon has ended; return its exit code."""
        if self.process is None:
            return 0
        async with asyncio.timeout(PATIENCE_S):
            code = await self.process.wait()
        self.codes.append(code)
        self.process = None
        return code

    async def until(self, is_so: Callable[[], object], *, what: str) -> None:
        """Poll until a condition outside of this process is true."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not is_so():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"this did not happen in time: {what}\n{self.log()}") from None

    def counts(self) -> dict[str, Any]:
        """Return the counts of pending and dead items."""
        if not self.home.database.exists():
            return {}
        with closing(SqliteRecords(self.home.database)) as kept:
            return dict(kept.counts(datetime.now(UTC)))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Query the database directly, beside the daemon."""
        with closing(sqlite3.connect(f"file:{self.home.database}?mode=ro", uri=True)) as kept:
            return kept.execute(sql).fetchall()

    async def status(self) -> Any:
        """Return the output of `claudius status --json`."""
        return (await asyncio.to_thread(self.machine.ok, "status", "--json")).json

    async def drained(self, *, heard: int = 0) -> None:
        """Wait until the daemon has accepted `heard` messages and nothing is pending."""

        def is_done() -> bool:
            """Return whether enough was accepted and nothing is pending."""
            counts = self.counts()
            (accepted,) = self.rows("SELECT count(*) FROM inbox")[0]
            return accepted >= heard and not counts["inbox"]["pending"] and not counts["outbox"]["pending"]

        await self.until(self.home.database.exists, what="a database")
        await self.until(is_done, what=f"nothing left to do of {heard} heard")

    async def judged(self, owed: Callable[[Entry], bool] = is_owed) -> list[str]:
        """Return the rules of the oracle that are broken. Call it after the daemon has stopped."""
        return judge(as_world(await self.slack.trace(), is_owed=owed), self.home)

    def log(self) -> str:
        """Return the end of the log, for a failure message."""
        path = self.machine.log
        return path.read_text()[-6000:] if path.exists() else "no log"


@asynccontextmanager
async def slack_daemon(root: Path, **settings: str) -> AsyncIterator[SlackDaemon]:
    """Yield a daemon, not started yet, for a Slack that redelivers events soon; kill the daemon at the end."""
    async with SlackServer() as server:
        await server.world.set(retry_delays_s=(0.05, 0.2, 0.5), ack_deadline_s=3.0, refresh_grace_s=0.2)
        machine = Machine(root)
        machine.scripted()
        machine.env |= {
            "CLAUDIUS_SLACK_API_URL": server.base_url,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            **UNHURRIED,
            **settings,
        }
        made = SlackDaemon(machine, server)
        try:
            yield made
        finally:
            await made.kill()
