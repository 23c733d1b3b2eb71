"""Print command output: one JSON document, or text for a person; and the results of checks."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from claudius.errors import near
from claudius.reports.plain import encode

if TYPE_CHECKING:
    from claudius.reports.network_checks import Check

_UNSEEN = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_CONTROL = re.compile(rf"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f{_UNSEEN}]")
_RAW_IN_JSON = re.compile(rf"[{_UNSEEN}]")

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


class Group(click.Group):
    """A group that names the nearest of its commands where a typed one does not exist."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that was typed. Raises: UsageError if there is none."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"there is no command {args[0]!r}{near(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


def print_checks(checks: Iterable[Check]) -> None:
    """Print one line a check, and the fix of each that failed."""
    for check in checks:
        click.secho("ok   " if check.ok else "FIX  ", nl=False, fg="green" if check.ok else "red")
        told = f"{check.name}: {check.detail}" + (f"; {check.fix}" if check.fix and not check.ok else "")
        click.echo(fitted(safe(told), indent=5))


def fitted(text: str, indent: int = 0) -> str:
    """Return text in lines that a terminal need not break within a word; as it is where there is no terminal.

    `indent`: how far in the first line begins, and the others are put. What is longer than a line stays whole.
    """
    if not sys.stdout.isatty():
        return text
    wide = shutil.get_terminal_size().columns - indent
    fill = partial(textwrap.wrap, width=max(wide, 20), break_long_words=False, break_on_hyphens=False)
    lines = [part for line in text.split("\n") for part in fill(line) or [""]]
    return ("\n" + " " * indent).join(lines)


def safe(text: str) -> str:
    """Remove control sequences from text that is printed to a terminal."""
    return _CONTROL.sub("", text)


def clock(at: str | None) -> str:
    """Return an instant as this machine's clock shows it. Pure, but for the time zone."""
    return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else "–"


def table(names: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()) -> Iterator[str]:
    """Yield the lines of a table with a heading, as wide as its content; columns in `right` are aligned there."""
    whole = [list(names), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    for row in whole:
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(names, row, widths, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def print_result(document: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Print what a command found: the document as JSON, or else the lines, which are only then made."""
    if as_json:
        print_json(document)
        return
    for line in lines:
        click.echo(line)


def print_json(document: Any) -> None:
    """Print one JSON document, times as RFC 3339 UTC."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = encode(document, ascii_only=not is_utf8, indent=2 if sys.stdout.isatty() else None)
    click.echo(_RAW_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
