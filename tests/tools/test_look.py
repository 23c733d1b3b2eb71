"""The tools that only look: arithmetic that cannot take long, the clock in any zone, memory under the audience rule."""

from datetime import UTC, datetime

import pytest

from claudius.errors import ToolFailed
from claudius.tool import ToolCall, ToolClass
from claudius.tools.shipped import calc, time_in

NOON = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
CALL = ToolCall(
    id="t/0", turn="t", conversation="c", audience="a", person="p", tool="calc", cls=ToolClass.LOOK, args={}
)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("17 / 100 * 240", "40.8"), ("0.1 + 0.2", "0.3"), ("2 ** 64", "18446744073709551616"), ("-7 // 2", "-4"),
        ("sqrt(2)", "1.41421356237"), ("max(1, round(2.6))", "3"), ("pi", "3.14159265359"),
        ("17% of 240", "40.8"), ("8 / 50%", "16"), ("(12 + 3%) * 2", "24.06"), ("17 % 5", "2"), ("-7 % 3", "2"),
        ("(3*hour + 20*minute) / day", "0.138888888889"), ("3*GB/MiB", "2861.02294922"), ("2*week", "1209600"),
        ("round(7, -10**9)", "0"),
    ],
)  # fmt: skip
async def test_arithmetic_is_worked_out(expression: str, value: str) -> None:
    """Whole numbers are exact, others have twelve digits."""
    assert await calc({"expression": expression}, CALL) == value


@pytest.mark.parametrize(
    "expression",
    ["9**9**9", "1" * 10_000, "(1).__class__", "x", "__import__('os')", "1e308 * 10", "(-1) ** 0.5", "1 / 0", "log(0)",
     "'a' * 9", "[1]", "True", "lambda: 1", "max", "round(1, ndigits=2)", "(" * 250 + ")" * 250, "", "9.9 ** 9999",
     "1 if 1 else 2", "10 ** 4000 * 10 ** 4000", "abs", "e(1)"],
)  # fmt: skip
async def test_what_is_no_small_arithmetic_is_refused(expression: str) -> None:
    """T26: powers that explode, long texts, attributes, names, calls of anything else."""
    with pytest.raises(ToolFailed):
        await calc({"expression": expression}, CALL)


@pytest.mark.parametrize(
    ("zone", "date", "add", "shown"),
    [
        ("Asia/Tokyo", "", "", "Thursday, 26 November 2026, 21:00 (Asia/Tokyo, UTC+09:00)"),
        ("Europe/Berlin", "2026-12-24", "", "Thursday, 24 December 2026 (Europe/Berlin, UTC+01:00), in 28 days"),
        ("Etc/UTC", "", "3 weeks", "Thursday, 17 December 2026, 12:00 (UTC), in 21 days"),
        ("UTC", "2027-01-31", "1 month", "Sunday, 28 February 2027 (UTC), in 94 days"),
        ("UTC", "2028-02-29T08:15", "-1 year", "Sunday, 28 February 2027, 08:15 (UTC), in 94 days"),
        ("Asia/Kolkata", "2026-11-25T20:00Z", "", "Thursday, 26 November 2026, 01:30 (Asia/Kolkata, UTC+05:30), today"),
        ("Europe/Berlin", "2027-03-27T12:00", "1 day", "Sunday, 28 March 2027, 12:00 (Europe/Berlin, UTC+02:00), in 122 days"),
        ("Europe/Berlin", "2027-03-27T12:00", "24 hours", "Sunday, 28 March 2027, 13:00 (Europe/Berlin, UTC+02:00), in 122 days"),
    ],
)  # fmt: skip
def test_the_clock_tells_of_now_and_of_a_date_in_a_zone(zone: str, date: str, add: str, shown: str) -> None:
    """A date's day of the week and how far it is, shifted by the calendar, and by the clock for hours."""
    assert time_in(zone, NOON, date, add) == shown


@pytest.mark.parametrize(
    "wrong",
    [("Tokyo",), ("../etc/passwd",), ("/etc/passwd",), ("\0",), ("UTC", "tomorrow"), ("UTC", "2026-13-01"),
     ("UTC", "", "soon"), ("UTC", "", "9 moons"), ("UTC", "", "9999999 years"), ("UTC", "", "1.5 days")],
)  # fmt: skip
def test_what_is_no_zone_date_or_shift_is_said_to_be_none(wrong: tuple[str, ...]) -> None:
    """In one line, and nothing is guessed."""
    with pytest.raises(ToolFailed, match=r"such as Asia/Tokyo|write a date as"):
        time_in(wrong[0], NOON, *wrong[1:])
