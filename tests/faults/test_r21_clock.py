"""R21: the wall clock is set while the soul is awake. Nothing expires or waits because of it, and order stays."""

import asyncio
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from claudius.errors import Overloaded
from claudius.home import Home
from claudius.memory.sqlite import SqliteStore
from claudius.providers.scripted import Scripted
from claudius.runtime.process_resources import Clock
from claudius.testing.alive import alive
from driven import reply
from lab.sample import NOW, perception

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
YEAR, HOUR = timedelta(days=365), timedelta(hours=1)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Return what the clock logs, wherever the log goes."""
    logger = logging.getLogger("claudius.runtime.process_resources")
    logger.addHandler(caplog.handler)
    logger.setLevel(logging.INFO)
    yield caplog
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(caplog.handler)


class Hands:
    """A wall clock and a monotonic clock that a test sets."""

    def __init__(self) -> None:
        """Start at START."""
        self.wall, self.running_s = START, 1000.0
        self.clock = Clock(lambda: self.wall, lambda: self.running_s)

    def runs(self, by: timedelta) -> None:
        """Let time pass."""
        self.wall += by
        self.running_s += by.total_seconds()

    def is_set(self, by: timedelta) -> None:
        """Set the wall clock without letting time pass."""
        self.wall += by


@pytest.mark.parametrize("by", [YEAR, -HOUR, timedelta(seconds=61), -YEAR], ids=str)
def test_r21_waits_do_not_follow_a_clock_that_is_set(by: timedelta) -> None:
    """Durations within a process follow the monotonic clock, whatever the wall clock says. A step is logged."""
    hands = Hands()
    hands.runs(HOUR)
    hands.is_set(by)
    hands.runs(timedelta(minutes=1))

    assert hands.clock.steady() == START + HOUR + timedelta(minutes=1)
    assert hands.clock.now() == START + HOUR + by + timedelta(minutes=1)
    assert hands.clock.look()
    assert not hands.clock.look()


def test_r21_small_corrections_are_not_steps(said: pytest.LogCaptureFixture) -> None:
    """Corrections by a time server, and summer time (which UTC lacks), are not reported."""
    hands = Hands()
    for _ in range(24 * 365):
        hands.runs(HOUR)
        hands.is_set(timedelta(milliseconds=5))

    assert not hands.clock.look()
    assert said.records == []


def test_r21_a_jump_of_a_year_expires_nothing_before_the_next_start(said: pytest.LogCaptureFixture) -> None:
    """After a step of over a day, ages count from the instant before it. A new process trusts the wall clock."""
    hands = Hands()
    hands.runs(HOUR)
    hands.is_set(YEAR)
    aged_at = hands.clock.expiry()
    hands.runs(timedelta(days=30))

    assert aged_at == START + HOUR
    assert hands.clock.expiry() == START + HOUR
    assert "nothing expires" in said.text
    assert Clock(lambda: hands.wall, lambda: hands.running_s).expiry() == hands.wall


def test_r21_a_step_back_makes_nothing_older() -> None:
    """A wall clock that goes back makes nothing older."""
    hands = Hands()
    hands.runs(HOUR)
    hands.is_set(-HOUR)

    assert hands.clock.expiry() == START


def test_r21_a_platform_knows_better_than_a_clock_that_was_always_wrong() -> None:
    """If the wall clock is a year ahead from the start, a network's timestamp is believed, and advances."""
    hands = Hands()
    hands.clock.heard("slack", START - YEAR)
    hands.runs(HOUR)
    hands.clock.heard("terminal", START + YEAR)

    assert hands.clock.expiry() == START - YEAR + HOUR


def test_r21_eight_hours_of_sleep_are_eight_hours() -> None:
    """A suspended machine has no step, because both clocks went on."""
    hands = Hands()
    hands.runs(timedelta(hours=8))

    assert not hands.clock.look()
    assert hands.clock.expiry() == hands.wall


async def test_r21_a_live_conversation_survives_a_jump_of_a_year(home: Home) -> None:
    """The clock jumps between two lines and within a turn: the second prompt still holds the first line."""
    hands = Hands()

    def jump_in_the_turn(_: object) -> str:
        """Set the clock during the model call."""
        hands.is_set(YEAR)
        return reply("Yes.")

    voice = Scripted(default=jump_in_the_turn)
    async with alive(home, voice, clock=lambda: hands.wall) as soul:
        for number in range(3):
            await soul.network.hear(f"line {number}")
            await soul.network.until_visible(number + 1)

    last = voice.requests[-1]
    assert [message.content.count("line 0") for message in last.history if "line 0" in message.content]
    assert not any(request.purpose == "summary" for request in voice.requests)


@pytest.mark.parametrize("jump", [-HOUR, YEAR])
async def test_r21_a_retry_waits_for_no_clock_and_a_turn_ends_by_none(home: Home, jump: timedelta) -> None:
    """A retry due in one second happens then, an hour back or a year ahead; only a moment has passed: no apology."""
    hands = Hands()

    def busy_once(_: object) -> str:
        """Fail the first time, and set the clock."""
        if hands.wall == START:
            hands.is_set(jump)
            raise Overloaded
        return reply("Yes.")

    async with alive(home, Scripted(default=busy_once), clock=lambda: hands.wall) as soul:
        await soul.network.hear("m")
        seen = await soul.network.until_visible(1)

    assert [one.text for one in seen] == ["Yes."]


async def test_r21_a_wait_that_a_wrong_clock_gave_ends_at_the_next_start(home: Home) -> None:
    """A process with its clock a year ahead postponed it, and the next process does not wait for that year."""
    store = SqliteStore(home.database)
    await store.start("ahead", NOW + YEAR)
    await store.inbox.accept((perception("m", n=1),), NOW + YEAR)
    pending = await store.inbox.oldest(perception("m", n=1).conversation)
    assert pending
    await store.inbox.postpone(pending.seq, NOW + YEAR, "Overloaded")
    await store.close(clean=True)

    store = SqliteStore(home.database)
    await store.start("right", NOW)
    found = await store.inbox.oldest(perception("m", n=1).conversation)
    await store.close(clean=True)

    assert found
    assert found.not_before is None


async def test_r21_lines_keep_their_order_when_the_clock_goes_back(home: Home) -> None:
    """Two lines of one terminal, with the clock set back between them, are heard in the order of speaking."""
    from claudius.adapters.terminal import TerminalAdapter  # noqa: PLC0415 - only here
    from claudius.runtime.control import ControlSocket, connect  # noqa: PLC0415 - only here

    hands, heard = Hands(), []

    async def accept(one: object) -> bool:
        """Store what is heard, and set the clock back."""
        heard.append(one)
        hands.is_set(-HOUR)
        return True

    adapter = TerminalAdapter(lambda: hands.wall)
    listening = asyncio.create_task(adapter.listen(accept))
    control = ControlSocket(home.socket, {"chat": adapter.chat})
    await control.open()
    async with connect(home.socket) as connection:
        await connection.send({"op": "chat"})
        for number in range(3):
            await connection.send({"op": "say", "id": str(number), "text": f"line {number}"})
        while len(heard) < 3:
            assert await connection.receive()
    await adapter.close()
    await listening
    await control.close()

    positions = [one.position for one in heard]
    assert positions == sorted(positions)
    assert [one.text for one in heard] == ["line 0", "line 1", "line 2"]
