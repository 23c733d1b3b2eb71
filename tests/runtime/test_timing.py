"""A job's next time: local times over both clock changes, intervals, jitter, quiet hours."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
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
from claudius.errors import BadConfiguration

ROME = ZoneInfo("Europe/Rome")
ZONES = (
    "Europe/Rome",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "America/Santiago",
    "Asia/Kathmandu",
    "UTC",
)


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
