"""Daemons and workers of one soul: real processes on a real PostgreSQL, with a loopback Slack."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from claudius.memory.opening import StorePlace
from claudius.testing.alive import UNHURRIED
from driven import Machine
from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import APP_TOKEN, BOT_TOKEN

if TYPE_CHECKING:
    import psycopg

ECHO = Path(__file__).parent / "echo_claudius.py"
START_S = 60.0
"""How long the first process may take to listen."""
COMMITTED = (
    "SELECT o.conversation, o.body FROM outbox o JOIN turn t ON t.turn = o.turn ORDER BY o.conversation, t.number"
)
WATCHED = """CREATE TABLE accepted (key text PRIMARY KEY);
CREATE FUNCTION accepts() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO accepted VALUES (new.key); RETURN NULL; END';
CREATE TRIGGER accepts AFTER INSERT ON inbox FOR EACH ROW EXECUTE FUNCTION accepts()"""
"""Has the server keep the instant at which each message became durable: `heard_at` is before it, by a commit."""
OVERTAKEN = """SELECT early.key, pg_xact_commit_timestamp(a.xmin)::text, late.key, late.taken_at, late.attempts::text
FROM inbox early JOIN accepted a ON a.key = early.key JOIN turn t ON t.turn = early.turn
JOIN turn before ON before.conversation = t.conversation AND before.number < t.number
JOIN inbox late ON late.turn = before.turn
WHERE late.position > early.position AND pg_xact_commit_timestamp(a.xmin) + interval '1 s' < late.taken_at::timestamptz"""
"""O3: a message that waited, for a second at least, when a later one was taken. What comes after that is answered next."""


@dataclass(slots=True)
class Company:
    """The processes of one soul, each in a home of its own: the first are daemons, the others are workers."""

    root: Path
    url: str
    slack: SlackServer
    daemons: int = 1
    running: dict[int, asyncio.subprocess.Process] = field(default_factory=dict)

    def machine(self, n: int) -> Machine:
        """Return the machine of the n-th process."""
        made = Machine(self.root / f"m{n}")
        made.scripted()
        made.env |= {
            **UNHURRIED,
            "CLAUDIUS_RUNTIME_MERGE_WHILE_BUSY": "0",  # each message is one that is counted
            "CLAUDIUS_SLACK_API_URL": self.slack.base_url,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "CLAUDIUS_STORE_URL": self.url,
            "CLAUDIUS_WORKER_LANES": "4",  # so that nobody does all of it
            "CLAUDIUS_WORKER_LEASE_S": "6",
            "CLAUDIUS_CORTEX_ENABLED": "false",
        }
        return made

    async def start(self, n: int) -> None:
        """Start the n-th process."""
        machine = self.machine(n)
        (machine.home / "run" / "starts").unlink(missing_ok=True)  # it is killed often, on purpose
        words = ("daemon", "run") if n < self.daemons else ("worker",)
        self.running[n] = await asyncio.create_subprocess_exec(
            sys.executable,
            str(ECHO),
            *words,
            env=machine.environment(),
            cwd=machine.user,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )

    async def kill(self, n: int) -> None:
        """Kill the n-th process, as a power cut would."""
        process = self.running.pop(n)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    def watch(self) -> None:
        """Have the server note when each message became durable."""
        with self._reading() as db:
            db.execute(WATCHED)

    def kept(self) -> tuple[dict[str, list[str]], list[tuple[str, ...]]]:
        """Return what was committed in each channel, in order; and whatever was taken after a later one, yet waited."""
        with self._reading() as db:
            committed: dict[str, list[str]] = defaultdict(list)
            for place, body in db.execute(COMMITTED):
                committed[place.split(":")[2]].append(body.removeprefix("re "))
            return committed, db.execute(OVERTAKEN).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[psycopg.Connection[tuple[str, ...]]]:
        import psycopg  # noqa: PLC0415 - an extra

        with psycopg.connect(self.url) as db:
            yield db

    def read(self, sql: str) -> list[tuple[Any, ...]]:
        """Return rows of the database."""
        with self._reading() as db:
            return db.execute(sql.encode()).fetchall()

    def said(self) -> int:
        """Return how many replies the soul has noted as said."""
        return int(self.read("SELECT count(*) FROM outbox WHERE state = 'sent'")[0][0])

    async def until_said(self, count: int, within_s: float) -> None:
        """Wait for so many."""
        async with asyncio.timeout(within_s):
            while self.said() < count:
                await asyncio.sleep(0.1)

    async def drained(self, within_s: float) -> None:
        """Wait until nothing is left to be thought or said, so that what would come twice has come."""
        from claudius.memory.postgres.store import PostgresRecords  # noqa: PLC0415 - an extra

        with closing(PostgresRecords(StorePlace(self.url), self.root)) as records:
            async with asyncio.timeout(within_s):
                while any(one["pending"] for one in list(records.counts(datetime.now(UTC)).values())[:2]):
                    await asyncio.sleep(0.1)

    def logs(self) -> str:
        """Return the ends of all logs, for a failure message."""
        found = [self.machine(n).log for n in self.running]
        return "\n".join(f"== {path}\n{path.read_text()[-2500:]}" for path in found if path.exists())


@asynccontextmanager
async def company(root: Path, url: str, *, daemons: int = 1, workers: int = 0) -> AsyncIterator[Company]:
    """Yield daemons and workers, running; kill them at the end."""
    async with SlackServer() as slack:
        await slack.world.set(retry_delays_s=(0.1, 0.5, 1.0), ack_deadline_s=3.0, refresh_grace_s=0.2)
        made = Company(root, url, slack, daemons)
        try:
            await made.start(0)
            await slack.world.until_connected(1, opened=1, within_s=START_S)
            made.watch()
            for n in range(1, daemons + workers):
                await made.start(n)
            yield made
        finally:
            for n in list(made.running):
                await made.kill(n)
