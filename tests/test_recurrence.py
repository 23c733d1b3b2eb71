"""Repetitions keep the clock on the wall, whatever it is set to."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.recurrence import DAYS, following

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca")


def instants(first: str, repeat: str, many: int, zone: str = "Europe/Berlin", until: date | None = None) -> list[str]:
    """Return the first of a repetition's instants by the wall clock of its zone."""
    at: datetime | None = datetime.fromisoformat(first).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    start, found = at, []
    while at is not None and start is not None and len(found) < many:
        found.append(f"{at.astimezone(ZoneInfo(zone)):%Y-%m-%dT%H:%M}")
        at = following(start, ZoneInfo(zone), repeat, at, until)
    return found


@pytest.mark.parametrize(
    ("first", "repeat", "right"),
    [
        ("2026-03-27T08:30", "weekdays", ["2026-03-27T08:30", "2026-03-30T08:30", "2026-03-31T08:30"]),
        ("2026-03-28T08:30", "weekdays", ["2026-03-28T08:30", "2026-03-30T08:30"]),
        ("2026-11-26T09:00", "mon,thu", ["2026-11-26T09:00", "2026-11-30T09:00", "2026-12-03T09:00"]),
        ("2026-11-25T09:00", "mon,thu", ["2026-11-25T09:00", "2026-11-26T09:00", "2026-11-30T09:00"]),
        ("2026-01-31T07:00", "monthly", ["2026-01-31T07:00", "2026-02-28T07:00", "2026-03-31T07:00"]),
        ("2028-02-29T07:00", "yearly", ["2028-02-29T07:00", "2029-02-28T07:00", "2030-02-28T07:00"]),
        ("2026-12-24T18:00", "weekly", ["2026-12-24T18:00", "2026-12-31T18:00", "2027-01-07T18:00"]),
        ("2026-03-28T02:30", "daily", ["2026-03-28T02:30", "2026-03-29T03:00", "2026-03-30T02:30"]),
        ("2026-10-24T02:30", "daily", ["2026-10-24T02:30", "2026-10-25T02:30", "2026-10-26T02:30"]),
    ],
)
def test_each_kind_of_repetition_comes_when_it_says(first: str, repeat: str, right: list[str]) -> None:
    """A first day off the list is kept, a short month's last day stands in, a gap gives its first minute after."""
    assert instants(first, repeat, len(right)) == right


def test_of_an_hour_that_comes_twice_the_first_is_meant_and_it_comes_once() -> None:
    """On 25 October 02:30 is at 00:30 and at 01:30 UTC."""
    first = datetime(2026, 10, 24, 0, 30, tzinfo=UTC)

    second = following(first, BERLIN, "daily", first)
    third = following(first, BERLIN, "daily", datetime(2026, 10, 25, 0, 30, tzinfo=UTC))

    assert second == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert third == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_an_hour_that_its_first_day_lacks_comes_on_all_others() -> None:
    """On 29 March Berlin has no 02:30, and gets the first minute after the gap."""
    wall = datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001 - of a wall

    first = following(wall, BERLIN, "daily", datetime(2026, 3, 28, 22, tzinfo=UTC))
    second = following(wall, BERLIN, "daily", datetime(2026, 3, 29, 1, tzinfo=UTC))

    assert (first, second) == (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 3, 30, 0, 30, tzinfo=UTC))


def test_the_29th_of_february_comes_back() -> None:
    """It is the 28th in the years between."""
    assert instants("2028-02-29T07:00", "yearly", 5)[-1] == "2032-02-29T07:00"


def test_a_repetition_ends_with_its_last_day() -> None:
    """The day counts by the zone's calendar, and is included."""
    assert instants("2026-11-26T23:30", "daily", 9, until=date(2026, 11, 27)) == [
        "2026-11-26T23:30",
        "2026-11-27T23:30",
    ]


def test_what_is_no_repetition_has_no_next_instant() -> None:
    """An empty rhythm, or one of a later release."""
    at = datetime(2026, 11, 26, tzinfo=UTC)

    assert [following(at, UTC, word, at) for word in ("", "fortnightly")] == [None, None]


@given(
    start=st.integers(1_577_836_800, 2_051_222_400).map(lambda at_s: datetime.fromtimestamp(at_s, UTC)),
    zone=st.sampled_from([*map(ZoneInfo, ZONES)]),
    repeat=st.one_of(
        st.sampled_from(["daily", "weekdays", "weekly", "monthly", "yearly"]),
        st.sets(st.sampled_from(DAYS), min_size=1).map(",".join),
    ),
    days=st.integers(0, 900),
)
def test_the_wall_clock_is_kept_and_none_is_left_out(start: datetime, zone: ZoneInfo, repeat: str, days: int) -> None:
    """The next instant is later, at the same hour on the wall unless that hour is missing, and the first that is."""
    after = start + timedelta(days=days)

    at = following(start, zone, repeat, after)

    assert at is not None
    assert at > after
    here, wall = at.astimezone(zone), start.astimezone(zone)
    is_missing = datetime.combine(here.date(), wall.time(), zone).astimezone(UTC).astimezone(zone).time() != wall.time()
    assert is_missing or here.time() == wall.time()
    assert following(start, zone, repeat, at - timedelta(microseconds=1)) == at
