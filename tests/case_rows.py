"""The rows of `tests/cases/*.json`: inputs with the right values, each one the case of a test."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent / "cases"


@dataclass(frozen=True, slots=True)
class Row:
    """One input with what is right for it."""

    id: str
    input: Mapping[str, Any]
    right: Mapping[str, Any]

    def knows_only(self, *keys: str) -> None:
        """Fail if something is right that the test does not look at."""
        assert set(self.right) <= {*keys, "note"}, f"{self.id}: the test does not read {set(self.right) - {*keys}}"


def rows(
    name: str, kind: str = "", *, only: str = "", later: Collection[str] = (), why: str = "acts", every: int = 1
) -> list[Any]:
    """Return the rows of one kind as the parameters of a test; those in `later` must still fail, for this reason.

    `only`: the id of the one row that is wanted. `every`: on a push only each so-manieth row is tried, all in `full`.
    """
    kept = json.loads((ROOT / f"{name}.json").read_text("utf-8"))["rows"]
    found = [one for one in kept if one.get("kind", "") == kind and only in ("", one["id"])]
    assert set(later) <= {one["id"] for one in found}, "a row that is left for later is in the file"
    failing = pytest.mark.xfail(reason=why, strict=True)
    return [
        pytest.param(
            Row(one["id"], one["input"], one["right"]),
            id=one["id"],
            marks=[failing] * (one["id"] in later) + [pytest.mark.slow] * bool(number % every),
        )
        for number, one in enumerate(found)
    ]
