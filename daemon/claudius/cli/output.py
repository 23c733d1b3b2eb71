"""How commands print: one JSON document, or text for a person."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime
from typing import Any

import click

_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def safe(text: str) -> str:
    """Take control sequences out of text that is printed to a terminal."""
    return _CONTROL.sub("", text)


def print_json(document: Any) -> None:
    """Print one JSON document, times as RFC 3339 UTC."""
    click.echo(json.dumps(document, ensure_ascii=False, default=_plain, indent=2 if sys.stdout.isatty() else None))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    raise TypeError(type(value).__name__)
