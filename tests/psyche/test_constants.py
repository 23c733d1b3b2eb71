"""docs/psyche-laws.md lists every constant of the psyche with its unit and the value in the code."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "psyche-laws.md"
UNITS = {"": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
ROW = re.compile(r"^\| `(\w+)\.([A-Z0-9_]+)` \| ([−\d. ]+?) ?(min|h|d)? \| .+ \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text("utf-8"))
ROOMS = sorted({room for room, *_ in ROWS})


def constants(room: str) -> Iterator[str]:
    """Yield the numbers that a module defines itself, without imported ones."""
    module = importlib.import_module(f"claudius.psyche.{room}")
    source = Path(module.__file__ or "").read_text("utf-8")
    for name in re.findall(
        r"\b[A-Z][A-Z0-9_]+\b(?=[^=\n(]* = )", "\n".join(re.findall(r"^[A-Z].*$", source, re.MULTILINE))
    ):
        value = getattr(module, name, None)
        values = value if isinstance(value, tuple) else (value,)
        if values and all(isinstance(one, int | float) for one in values) and name not in ("HOUR_S", "DAY_S"):
            yield name


@pytest.mark.parametrize(("room", "name", "value", "unit"), ROWS)
def test_a_constant_is_as_the_page_says(room: str, name: str, value: str, unit: str) -> None:
    """The page and the code have the same value."""
    found = getattr(importlib.import_module(f"claudius.psyche.{room}"), name)

    said = tuple(float(one.replace("−", "-")) * UNITS[unit] for one in value.split())
    assert said == pytest.approx(found if isinstance(found, tuple) else (found,))


@pytest.mark.parametrize("room", ROOMS)
def test_no_constant_is_missing_on_the_page(room: str) -> None:
    """The page explains every number of the package, except limits on the length of words and lists."""
    told = {name for where, name, *_ in ROWS if where == room}

    assert {name for name in constants(room) if not name.endswith(("NAME_CHARS", "WORDS_CHARS"))} <= told
