"""F1: a daemon and workers, real processes on a real PostgreSQL, killed at random under traffic of a loopback Slack."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from claudius.memory.opening import StorePlace
from claudius.testing.alive import UNHURRIED
from driven import Machine
from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import APP_TOKEN, BOT_TOKEN

if TYPE_CHECKING:
    import psycopg

ECHO = Path(__file__).parents[1] / "echo_claudius.py"
SIZES = {"push": (6, 16, 8, 200), "full": (60, 100, 40, 1800), "nightly": (1000, 100, 100, 7200)}
"""Kills, conversations, messages in each, and seconds to wait at most, by the profile of the tests."""
KILLS, PLACES, EACH, PATIENCE_S = SIZES[os.environ.get("CLAUDIUS_TEST_PROFILE", "push")]
WORKERS = 3
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
    """The processes of one soul, each in a home of its own: the first is the daemon, the others are workers."""

    root: Path
    url: str
    slack: SlackServer
    running: dict[int, asyncio.subprocess.Process] = field(default_factory=dict)

    def machine(self, n: int) -> Machine:
        """Return the machine of the n-th process."""
        made = Machine(self.root / f"m{n}")
        made.scripted()
        made.env |= {
            **UNHURRIED,
            "CLAUDIUS_SLACK_API_URL": self.slack.base_url,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "CLAUDIUS_STORE_URL": self.url,
            "CLAUDIUS_STORE_LOOK_S": "0.2",
            "CLAUDIUS_WORKER_LANES": "4",  # so that nobody does all of it
            "CLAUDIUS_WORKER_LEASE_S": "6",
            "CLAUDIUS_WORKER_RENEW_S": "2",
            "CLAUDIUS_CORTEX_ENABLED": "false",
        }
        return made

    async def start(self, n: int) -> None:
        """Start the n-th process."""
        machine = self.machine(n)
        (machine.home / "run" / "starts").unlink(missing_ok=True)  # it is killed often, on purpose
        words = ("daemon", "run") if n == 0 else ("worker",)
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

    async def drained(self) -> None:
        """Wait until nothing is left to be thought or said, so that what would come twice has come."""
        from claudius.memory.postgres.records import PostgresRecords  # noqa: PLC0415 - an extra

        with closing(PostgresRecords(StorePlace(self.url), self.root)) as records:
            async with asyncio.timeout(PATIENCE_S):
                while any(one["pending"] for one in list(records.counts(datetime.now(UTC)).values())[:2]):
                    await asyncio.sleep(0.1)

    def logs(self) -> str:
        """Return the ends of all logs, for a failure message."""
        found = [self.machine(n).log for n in range(WORKERS + 1)]
        return "\n".join(f"== {path}\n{path.read_text()[-2500:]}" for path in found if path.exists())


@asynccontextmanager
async def company(root: Path, url: str) -> AsyncIterator[Company]:
    """Yield a daemon and its workers, running; kill them at the end."""
    async with SlackServer() as slack:
        await slack.world.set(retry_delays_s=(0.1, 0.5, 1.0), ack_deadline_s=3.0, refresh_grace_s=0.2)
        made = Company(root, url, slack)
        try:
            await made.start(0)
            await slack.world.until_connected(1, opened=1, within_s=PATIENCE_S)
            made.watch()
            for n in range(1, WORKERS + 1):
                await made.start(n)
            yield made
        finally:
            for n in list(made.running):
                await made.kill(n)


@pytest.mark.timeout(2 * PATIENCE_S)
async def test_scale_f1_random_kills_lose_nothing_and_double_nothing(postgres_url: str, tmp_path: Path) -> None:
    """0 lost, 0 double, 0 out of order, whichever process is killed, and whenever."""
    chance = random.Random(1)  # noqa: S311 - no secret
    said: dict[str, list[str]] = defaultdict(list)
    async with company(tmp_path, postgres_url) as soul:
        people = soul.slack.world
        dms = {}
        for n in range(PLACES):
            person = f"U9{n:03d}"
            await people.add_user(person, f"p{n}")
            dms[await people.open_dm(person)] = person

        async def talk() -> None:
            """Have people talk, all at once."""
            for n in range(EACH):
                for place, person in dms.items():
                    said[place].append(f"{person} {n}")
                    await people.say(place, person, said[place][-1])
                await people.until_visible(n * PLACES // 2, within_s=PATIENCE_S)

        talking = asyncio.create_task(talk())
        for _ in range(KILLS):
            seen = len(await people.visible())
            await people.until_visible(min(seen + chance.randint(0, PLACES), PLACES * EACH), within_s=PATIENCE_S)
            n = chance.choice(list(soul.running))
            await soul.kill(n)
            await soul.start(n)
        await talking
        wanted = sum(map(len, said.values()))
        try:
            await people.until_visible(wanted, within_s=PATIENCE_S)
        except TimeoutError:
            raise AssertionError(soul.logs()) from None
        await soul.drained()
        shown = await people.visible()
        thought = [soul.machine(n).requests for n in range(WORKERS + 1)]
        thinkers = [n for n, requests in enumerate(thought) if requests.exists()]
        calls = sum(requests.read_text().count("\n") for requests in thought if requests.exists())

    found: dict[str, list[str]] = defaultdict(list)
    for one in shown:
        found[one.channel].append(one.text.removeprefix("re "))
    assert {place: sorted(texts) for place, texts in found.items()} == {
        place: sorted(texts) for place, texts in said.items()
    }
    committed, overtaken = soul.kept()
    assert found == committed
    assert not overtaken
    assert len(thinkers) > 1
    assert calls <= wanted + 16 * KILLS  # whatever a process held when it was killed is thought again
