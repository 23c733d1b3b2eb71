"""The scheduler: each job runs as often as specified, whatever the machine does; its next time over clock changes."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.cognition.timing import (
    MOST,
    Timing,
    is_quiet,
    local_instant,
    next_local,
    next_quiet,
    quiet_end,
    read_hours,
    zone_of,
)
from claudius.errors import BadConfiguration, StoreError
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.runtime import scheduler as clockwork
from claudius.runtime.jobs import Job, Tools
from claudius.runtime.jobs.upkeep import superfluous
from claudius.runtime.scheduler import open_bell
from claudius.testing.alive import Alive, alive
from minds import Wall, by_tag, until

INNER = "self:claudius:inner:"
ZONE = {"CLAUDIUS_CLOCK_TIMEZONE": "Europe/Rome"}


def awake(home: Home, voice: Scripted, wall: Wall, **more: Any) -> Any:
    """Start a soul with its scheduler, in Rome."""
    settings = ZONE | more.pop("settings", {})
    return alive(home, voice, clock=wall, running=wall.running, settings=settings, keeps_clock=True, **more)


async def look(soul: Alive, wall: Wall) -> None:
    """Run the scheduler once, and wait until the jobs that it starts are done."""
    await soul.services.look(wall.now)
    await soul.idle()


def rung(home: Home, job: str) -> list[tuple[str, str]]:
    """Return each run of a job: its key and its outcome."""
    with closing(sqlite3.connect(home.database)) as connection:
        rows = connection.execute(
            "SELECT key, reason FROM inbox WHERE conversation = ? AND state = 'settled' ORDER BY seq", (INNER + job,)
        )
        return [(key, reason) for key, reason in rows]


async def test_d11_a_day_without_a_word_costs_nothing(home: Home) -> None:
    """d11: 24 hours with daimons on and no message: no job calls a model, and one backup is made and verified."""
    voice, wall = Scripted(), Wall("2026-01-05T12:00:00")
    settings = {"CLAUDIUS_KOTHAR_GROQ_ENABLED": "1", "CLAUDIUS_PSYCHE_PROACTIVE": "1"}
    async with awake(home, voice, wall, settings=settings) as soul:
        for _ in range(24 * 4 + 1):
            await look(soul, wall)
            wall.passes(minutes=15)

    assert voice.requests == []
    assert [reason.partition(", ")[2] for _, reason in rung(home, "backup")] == ["verified"]
    assert len(list(home.backups.glob("claudius-*.db"))) == 1
    assert len(rung(home, "kothar_whisper")) in range(24, 34)


@pytest.mark.parametrize("begins", ["2026-03-26T12:00:00", "2026-10-22T12:00:00"], ids=["spring", "autumn"])
async def test_d12_a_week_with_a_change_of_the_clocks_suspends_and_restarts(home: Home, begins: str) -> None:
    """d12: seven nights, seven backups; the hourly job runs once an hour awake and once after each sleep."""
    voice, wall = Scripted(), Wall(begins)
    ends, expected, due = wall.now + timedelta(days=7), 0, None
    sleeps = {30: 8.0, 75: 2.0, 140: 11.0}
    restarts = {20, 60, 61, 130}
    hours = 0.0
    while wall.now < ends:
        async with awake(home, voice, wall, clean=len(restarts) % 2 == 0) as soul:
            await soul.server.ready()
            while wall.now < ends:
                await look(soul, wall)
                if due is None:
                    due = wall.now + timedelta(hours=1)
                elif due <= wall.now:
                    expected, due = expected + 1, wall.now + timedelta(hours=1)
                asleep = next((one for one in sorted(sleeps) if one <= hours), None)
                step = sleeps.pop(asleep) if asleep is not None else 0.5
                wall.passes(hours=step)
                hours += step
                stop = next((one for one in sorted(restarts) if one <= hours), None)
                if stop is not None:
                    restarts.remove(stop)
                    break

    backups, expiries = rung(home, "backup"), rung(home, "memory_expiry")
    days = [_instant(key).date() for key, _ in backups]
    assert len(backups) == len(set(days)) == 7
    assert all(reason.endswith("verified") for _, reason in backups)
    assert len(expiries) == len({key for key, _ in expiries}) == expected
    assert voice.requests == []


def _instant(key: str) -> datetime:
    return datetime.fromisoformat(key.split(":", 2)[2])


async def test_d12_killed_between_the_ring_and_the_work(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """d12: a scheduled run is durable: after a kill, the next process does the work once."""
    did: list[str] = []
    entered = asyncio.Event()

    async def work(tools: Tools) -> str:
        """Do the job's work."""
        did.append(tools.now.isoformat())
        if len(did) == 1:
            entered.set()
            await asyncio.Event().wait()
        return "done"

    monkeypatch.setattr(clockwork, "JOBS", (Job("chore", Timing(every=timedelta(hours=1)), work),))
    wall = Wall("2026-01-05T12:00:00")
    async with awake(home, Scripted(), wall, clean=False) as soul:
        await soul.services.look(wall.now)
        wall.passes(hours=1)
        await soul.services.look(wall.now)
        await entered.wait()
    async with awake(home, Scripted(), wall) as soul:
        await until(lambda: rung(home, "chore"))
        await look(soul, wall)

    assert len(did) == 2
    assert [reason for _, reason in rung(home, "chore")] == ["done"]


async def test_a_clock_that_is_set_rings_each_job_once_forward_and_none_twice_back(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock set forward a year runs each job once; set back a day, it runs none again, and none pauses for a day."""

    async def work(_: Tools) -> str:
        """Do the job's work."""
        return "done"

    monkeypatch.setattr(clockwork, "JOBS", (Job("chore", Timing(every=timedelta(hours=1)), work),))
    wall, found = Wall("2026-01-05T12:00:00"), []
    async with awake(home, Scripted(), wall) as soul:
        for by in (timedelta(0), timedelta(days=365), timedelta(minutes=1), timedelta(days=-366), timedelta(minutes=59), timedelta(minutes=3)):  # fmt: skip
            wall.now += by
            await look(soul, wall)
            found.append(len(rung(home, "chore")))

    assert found == [0, 1, 1, 1, 1, 2]


async def test_two_looks_at_once_are_one_ring(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is one perception per instant, however many look; a job whose work still waits is not started again."""
    go, did = asyncio.Event(), 0

    async def work(_: Tools) -> str:
        """Do the job's work."""
        nonlocal did
        did += 1
        await go.wait()
        return "done"

    monkeypatch.setattr(clockwork, "JOBS", (Job("chore", Timing(every=timedelta(hours=1)), work),))
    wall = Wall("2026-01-05T12:00:00")
    async with awake(home, Scripted(), wall) as soul:
        await soul.services.look(wall.now)
        wall.passes(hours=1)
        await asyncio.gather(*(soul.services.look(wall.now) for _ in range(5)))
        wall.passes(hours=3)
        await soul.services.look(wall.now)
        go.set()
        await soul.idle()

    assert did == 1
    assert len(rung(home, "chore")) == 1


async def test_a_job_that_fails_is_done_with_and_rings_ever_more_seldom(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the third failure in a row on the interval doubles; a success resets it; a failing store does not count."""
    broken = True

    async def work(_: Tools) -> str:
        """Do the job's work."""
        if broken:
            raise ValueError("broken")
        return "done"

    monkeypatch.setattr(clockwork, "JOBS", (Job("chore", Timing(every=timedelta(hours=1)), work),))
    wall, waits = Wall("2026-01-05T12:00:00"), []
    async with awake(home, Scripted(), wall, settings={"CLAUDIUS_PSYCHE_ENABLED": "0"}) as soul:
        await look(soul, wall)
        for n in range(6):
            broken = n < 5
            row = next(one for one in soul.records().jobs() if one["job"] == "chore")
            wait = datetime.fromisoformat(row["next_due"]) - wall.now
            waits.append(wait.total_seconds() / 3600)
            wall.passes(seconds=wait.total_seconds())
            await look(soul, wall)
        after = next(one for one in soul.records().jobs() if one["job"] == "chore")

    assert waits == [1, 1, 1, 2, 4, 8]
    assert (after["failures"], after["outcome"]) == (0, "done")


async def test_the_clock_goes_on_where_the_store_fails_for_a_moment(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that cannot read the store leaves everything due as it was."""
    wall = Wall("2026-01-05T12:00:00")
    async with awake(home, Scripted(), wall) as soul:
        await look(soul, wall)
        wall.passes(hours=2)
        with monkeypatch.context() as patch:

            def fails() -> Any:
                """Raise an error."""
                raise StoreError("busy")

            patch.setattr(soul.mind.store.plans, "jobs", fails)
            with pytest.raises(StoreError):
                await soul.services.look(wall.now)
        await look(soul, wall)

    assert len(rung(home, "memory_expiry")) == 1


async def test_a_talk_that_fell_quiet_is_looked_at_once_in_silence(home: Home) -> None:
    """Half an hour after the last word, one silent turn runs there: a thought and the state; nothing is said."""
    voice = Scripted(default=by_tag(soul_state_check="true", soul_state_update="currentTopic: rust"))
    wall = Wall("2026-01-05T12:00:00")
    async with awake(home, voice, wall, settings={"CLAUDIUS_PSYCHE_ENABLED": "0"}) as soul:
        await look(soul, wall)
        await soul.network.hear("Hello.")
        await soul.until_said(1)
        for _ in range(8):
            wall.passes(minutes=31)
            await look(soul, wall)
        state = soul.records().state()
        said = len(soul.network.visible)
        calls = len(voice.requests)
        standing = soul.records().conversation("rehearsal:t:dm-ana:")

    assert (said, calls) == (1, 2)
    assert "internal_monologue, soul_state_check" in voice.requests[1].tail
    assert "external_dialogue" not in voice.requests[1].tail.partition("## This Turn")[2].partition("\n## ")[0]
    assert state["currentTopic"]["value"] == "rust"
    assert standing["process"] in ("greeting", "main_process")


async def test_what_is_expired_is_folded_while_nobody_speaks(home: Home) -> None:
    """A conversation past its time to live is summarised by one call; its entries are deleted, and it is left alone."""
    voice = Scripted(default=lambda one: "They spoke of rust." if one.purpose == "summary" else by_tag()(one))
    wall = Wall("2026-01-05T12:00:00")
    async with awake(home, voice, wall) as soul:
        await look(soul, wall)
        await soul.network.hear("My bridge rusts.")
        await soul.until_said(1)
        for _ in range(5):
            wall.passes(hours=30)
            await look(soul, wall)
        entries = soul.records().conversation("rehearsal:t:dm-ana:")["entries"]
        await soul.network.hear("Again.")
        await soul.until_said(2)

    assert [one.purpose for one in voice.requests].count("summary") == 1
    assert entries == []
    assert "They spoke of rust." in "".join(message.content for message in voice.requests[-1].history)


async def test_jobs_stand_in_the_schedule(home: Home) -> None:
    """Every job is listed with its next time and last outcome; a job whose daimon is switched off is not listed."""
    wall = Wall("2026-01-05T12:00:00")
    async with awake(home, Scripted(), wall, settings={"CLAUDIUS_KOTHAR_ENABLED": "1"}) as soul:
        await look(soul, wall)
        with_kothar = [row["job"] for row in soul.records().jobs()]
    async with awake(home, Scripted(), wall) as soul:
        await look(soul, wall)
        without = [row["job"] for row in soul.records().jobs()]

    assert sorted(with_kothar) == [
        "backup", "kothar_whisper", "memory_expiry", "overwriting", "records", "silence", "soul_state_check", "tick",
    ]  # fmt: skip
    assert sorted(without) == sorted({*with_kothar} - {"kothar_whisper"})


def test_of_old_backups_seven_days_and_four_weeks_are_kept() -> None:
    """The newest backup of each of seven days and four weeks is kept, and those under a day old; foreign files stay."""
    now = datetime(2026, 3, 31, 4, tzinfo=UTC)
    names = [f"claudius-{now - timedelta(days=n):%Y%m%dT%H%M%S}.000000Z.db" for n in range(60)]

    gone = superfluous([*names, "claudius-mine.db", "notes.txt"], now)
    kept = [name for name in names if name not in gone]

    assert kept[:7] == names[:7]
    assert 7 <= len(kept) <= 11
    assert not {"claudius-mine.db", "notes.txt"} & set(gone)
    assert superfluous(kept, now) == []


async def test_the_bell_rings_when_it_was_told_and_can_be_told_anew() -> None:
    """The APScheduler timer keeps one order: a new one replaces it, and after closing it no longer fires."""
    rang: list[int] = []
    event = asyncio.Event()
    bell = await open_bell(lambda: (rang.append(1), event.set()))
    bell.ring_in(3600)
    bell.ring_in(0.01)
    async with asyncio.timeout(20):
        await event.wait()
    bell.close()

    assert rang == [1]


async def test_a_time_out_in_what_is_due_is_told_and_not_tried_at_once_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before the first turn the wait ends with a TimeoutError of its own: that of a job is none."""
    looks = 0

    async def late(*_: Any) -> float:
        """Raise what a job may raise."""
        nonlocal looks
        looks += 1
        raise TimeoutError if looks == 1 else AssertionError("it looked again at once")

    monkeypatch.setattr(clockwork, "tick", late)
    nobody: Any = None

    with pytest.raises(TimeoutError):
        await clockwork.keep_time(nobody, nobody, asyncio.Event())


ROME = ZoneInfo("Europe/Rome")
ZONES = (
    "Europe/Rome", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "America/Santiago", "Asia/Kathmandu",
    "UTC",
)  # fmt: skip


def at(text: str) -> datetime:
    """Parse a UTC instant."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "day", "when", "instant"),
    [
        ("Europe/Rome", "2026-03-29", time(2, 30), "2026-03-29T01:00:00"),
        ("Europe/Rome", "2026-03-29", time(3, 30), "2026-03-29T01:30:00"),
        ("Europe/Rome", "2026-10-25", time(2, 30), "2026-10-25T00:30:00"),
        ("Europe/Rome", "2026-10-25", time(3, 30), "2026-10-25T02:30:00"),
        ("America/New_York", "2026-03-08", time(2, 30), "2026-03-08T07:00:00"),
        ("America/New_York", "2026-11-01", time(1, 30), "2026-11-01T05:30:00"),
        ("Australia/Lord_Howe", "2026-10-04", time(2, 15), "2026-10-03T15:30:00"),
        ("UTC", "2026-10-25", time(3, 30), "2026-10-25T03:30:00"),
    ],
)
def test_d12_a_local_time_that_is_not_there_or_there_twice(zone: str, day: str, when: time, instant: str) -> None:
    """d12: in a gap a local time is the first instant after it; where it occurs twice, it is the first."""
    found = local_instant(datetime.fromisoformat(day), when, ZoneInfo(zone))

    assert found == at(instant)


@given(
    st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001 - made aware below
    st.times(),
    st.sampled_from(ZONES),
)
def test_d12_a_local_time_comes_once_a_day(naive: datetime, when: time, zone: str) -> None:
    """d12: the next time is after now, at most a day plus the clock change later; a year has one for each day."""
    when = when.replace(microsecond=0, second=0)
    now, place = naive.replace(tzinfo=UTC), ZoneInfo(zone)
    days = []
    for _ in range(10):
        following = next_local(now, when, place)
        assert now < following <= now + timedelta(hours=26)
        days.append(following.astimezone(place).date())
        now = following

    assert days == [days[0] + timedelta(days=n) for n in range(10)]


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 40))
def test_jitter_stays_within_its_share_and_failures_double_up_to_a_day(chance: float, failures: int) -> None:
    """An interval varies only by its share; from the third failure in a row it doubles, up to a day."""
    timing, now = Timing(every=timedelta(minutes=45), jitter=0.2), at("2026-01-05T12:00:00")

    waits = timing.after(now, UTC, chance, failures) - now
    every = min(MOST, timedelta(minutes=45) * 2 ** max(0, min(failures, 12) - 2))

    assert every * 0.8 <= waits <= every * 1.2
    assert timing.after(now, UTC, chance, failures) <= timing.latest(now, UTC, failures)


@pytest.mark.parametrize(
    ("hours", "local", "quiet"),
    [
        ("21:00-08:00", "20:59", False),
        ("21:00-08:00", "21:00", True),
        ("21:00-08:00", "03:00", True),
        ("21:00-08:00", "08:00", False),
        ("12:00-13:00", "12:30", True),
        ("12:00-13:00", "13:00", False),
        ("", "03:00", False),
    ],
)
def test_quiet_hours_are_local_and_go_through_midnight(hours: str, local: str, quiet: bool) -> None:  # noqa: FBT001 - a table's column
    """Quiet hours last from the first time to the second in the local zone; without settings there are none."""
    now = datetime.fromisoformat(f"2026-07-01T{local}").replace(tzinfo=ROME).astimezone(UTC)

    assert is_quiet(now, ROME, read_hours(hours)) is quiet
    assert not is_quiet(quiet_end(now, ROME, read_hours(hours)), ROME, read_hours(hours))


def test_a_zone_that_is_not_there_is_one_line() -> None:
    """The error about an unknown IANA name says what to write; an empty name is the system's zone."""
    with pytest.raises(BadConfiguration, match="Mars/Base"):
        zone_of("Mars/Base")

    assert zone_of("") is not None


@pytest.mark.parametrize(
    ("now", "hours", "begins"),
    [
        ("2026-03-02T12:00", "21:00-08:00", "2026-03-02T20:00"),  # Rome is an hour ahead
        ("2026-03-02T23:00", "21:00-08:00", "2026-03-02T23:00"),
        ("2026-03-02T07:00", "21:00-08:00", "2026-03-02T20:00"),
        ("2026-03-28T21:30", "02:30-06:00", "2026-03-29T01:00"),  # 02:30 is not there that night
        ("2026-03-02T12:00", "", "2026-03-03T02:00"),
    ],
)
def test_the_next_quiet_hours_begin(now: str, hours: str, begins: str) -> None:
    """What keeps others waiting is done when the quiet hours begin, at once within them, at 03:00 where there are none."""
    assert next_quiet(at(now), ROME, read_hours(hours)) == at(begins)
