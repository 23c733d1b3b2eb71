"""The rows of `cases/forget.json`: what must be gone after forgetting, and what a receipt must say."""

import json
from pathlib import Path
from typing import Any

ROWS: dict[str, dict[str, Any]] = {
    row["id"]: row for row in json.loads((Path(__file__).parent / "cases" / "forget.json").read_text("utf-8"))["rows"]
}


def right(row: str, *read: str) -> dict[str, Any]:
    """Return what a row demands; the test that asks reads these keys of it, and there are no others."""
    found: dict[str, Any] = ROWS[row]["right"]
    assert set(found) == set(read), f"{row} also demands {set(found) ^ set(read)}"
    return found
