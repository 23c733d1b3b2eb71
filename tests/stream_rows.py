"""The rows of `cases/streams.json`: what models and their servers send."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases" / "streams.json").read_text("utf-8"))["rows"]


def rows(kind: str | None) -> Any:
    """Parametrise over the rows of a kind."""
    found = [pytest.param(row, id=row["id"]) for row in ROWS if row.get("kind") == kind]
    return pytest.mark.parametrize("row", found)


class Right:
    """What is right in a row. Each key must be read, so that none passes unseen."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._left = dict(row["right"])

    def take(self, key: str, default: Any = None) -> Any:
        """Return a value, once."""
        return self._left.pop(key, default)

    def end(self) -> None:
        """Check that all was read."""
        assert not self._left, "a key of `right` that this test does not read"
