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


def test_the_clock_tells_the_time_in_a_zone() -> None:
    """An unknown one is said to be none."""
    assert time_in("Asia/Tokyo", NOON) == "Thursday, 26 November 2026, 21:00 (Asia/Tokyo, UTC+09:00)"
    for zone in ("Tokyo", "../etc/passwd", "/etc/passwd", "\0"):
        with pytest.raises(ToolFailed):
            time_in(zone, NOON)
