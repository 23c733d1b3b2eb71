"""Write a document as JSON: times as RFC 3339 UTC. The command line and the console print the same bytes."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any


def encode(document: Any, *, ascii_only: bool = False, indent: int | None = None) -> str:
    """Return one JSON document."""
    return json.dumps(document, ensure_ascii=ascii_only, default=_plain, indent=indent)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    raise TypeError(type(value).__name__)
