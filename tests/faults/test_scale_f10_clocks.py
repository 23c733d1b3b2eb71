"""F10: two workers' clocks differ by twenty minutes, and step; nothing runs back, and nothing rings early or twice."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from claudius.intent import Schedule
from claudius.perception import private
from claudius.runtime.scheduler import tick
from workers import World

AHEAD = timedelta(minutes=10)
INSTANTS = (
    "SELECT t.number, t.at, min(e.at) AS first, max(e.at) AS last FROM turn t JOIN entry e USING (conversation, number)"
    " WHERE e.entry_type <> 'userMessage' GROUP BY t.number, t.at ORDER BY t.number"
)
QUEUED = "SELECT heard_at AS at FROM inbox ORDER BY position"
SAID = "SELECT at FROM outbox ORDER BY seq"
SENT = "SELECT sent_at AS at FROM outbox ORDER BY seq"


def wrong(by: list[timedelta]) -> Callable[[], datetime]:
    """Return a wall clock that is wrong by what `by` holds, which may change."""
    return lambda: datetime.now(UTC) + by[0]


@pytest.mark.parametrize("ahead", [AHEAD, -AHEAD], ids=["ahead", "behind"])
async def test_scale_f10_a_conversations_instants_never_run_back(
    ahead: timedelta, postgres_url: str, tmp_path: Path
) -> None:
    """Turns are thought by a worker whose clock is ahead, and then by one whose clock is behind, and that steps."""
    world, one, other = World(postgres_url, tmp_path), [ahead], [-ahead]
    for n, by in enumerate((one, other)):
        async with AsyncExitStack() as stack:
            soul = await world.worker(stack, clock=wrong(by))
            await world.offer(soul, world.post(1, 2 * n))
            await world.answered()
            by[0] = -by[0]
            await world.offer(soul, world.post(1, 2 * n + 1))
            await world.answered()
            await soul.idle()

    world.judge()
    began = datetime.now(UTC)
    for sql in (INSTANTS, QUEUED, SAID, SENT):
        found = read(postgres_url, sql)
        instants = [instant for row in found for instant in row]
        assert len(found) == len(world.said)
        assert instants == sorted(instants)
        assert abs(datetime.fromisoformat(instants[-1]) - began) < AHEAD / 2


def read(url: str, sql: str) -> list[list[str]]:
    """Return the instants of each row, in order."""
    import psycopg  # noqa: PLC0415 - an extra

    with closing(psycopg.connect(url)) as server:
        return [[value for value in row if isinstance(value, str)] for row in server.execute(sql.encode()).fetchall()]


async def test_scale_f10_a_plan_rings_at_its_time_and_once(postgres_url: str, tmp_path: Path) -> None:
    """A clock that is ahead rings nothing early; what is due is rung by one, though both look at once."""
    world, who = World(postgres_url, tmp_path), "rehearsal:t:p1"
    later, due = (datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (5, -1))
    async with AsyncExitStack() as stack:
        souls = [await world.worker(stack, clock=wrong([ahead])) for ahead in (AHEAD, -AHEAD)]
        for n, at in enumerate((later, due)):
            plan = Schedule(id=n + 1, conversation=f"rehearsal:t:dm-p1:{n}", at=at, text="now", audience=private(who))
            assert await souls[n].mind.store.plans.plan(plan)
        rung: list[str] = []

        await asyncio.gather(*(tick(soul.mind, rung.append) for soul in souls))

        assert rung == ["rehearsal:t:dm-p1:1"]
        assert souls[0].mind.store.plans.next_due() == later
        for soul in souls:
            await soul.idle()
