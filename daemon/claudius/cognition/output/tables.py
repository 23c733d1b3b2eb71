"""Find the tables of a text, and write them for a network that shows none. Pure.

A table is a code block whose columns are padded by the width on a screen; one that is too wide for that, or has one
column only, is a list. Source: the GitHub Flavored Markdown specification, section 4.10; Unicode UAX #11.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

MOST_WIDE = 64
"""A wider table is written as a list: a code block does not wrap well on a small screen."""
_RULE = re.compile(r"^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_BETWEEN = re.compile(r"(?<!\\)\|")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_DEEP = re.compile(r"^ {0,3}#{4,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)


class Table(Struct, frozen=True):
    """A table from `start` to `end` of a text; its rows begin at `body`."""

    start: int
    body: int
    end: int
    rows: tuple[tuple[str, ...], ...]
    """The cells of each row, the header first."""


def tables(text: str) -> Iterator[Table]:
    """Find every table outside of code blocks, in order."""
    lines = text.splitlines(keepends=True)
    at, fence, place = 0, "", 0
    while place < len(lines):
        found = _FENCE.match(lines[place])
        if found and (not fence or found[1].startswith(fence)):
            fence = "" if fence else found[1]
        elif not fence and place + 1 < len(lines) and _is_head(lines[place], lines[place + 1]):
            last = place + 2
            while last < len(lines) and "|" in lines[last]:
                last += 1
            body = at + len(lines[place]) + len(lines[place + 1])
            end = at + sum(map(len, lines[place:last]))
            rows = tuple([cells(line) for line in (lines[place], *lines[place + 2 : last])])
            yield Table(at, body, end, rows)
            at, place = end, last
            continue
        at += len(lines[place])
        place += 1


def _is_head(line: str, rule: str) -> bool:
    return "|" in line and "|" in rule and bool(_RULE.match(rule.rstrip())) and len(cells(line)) == len(cells(rule))


def cells(line: str) -> tuple[str, ...]:
    """Return the cells of a row, without the bars that stand around them. Pure."""
    line = line.strip().removeprefix("|")
    line = line[:-1] if line.endswith("|") and not line.endswith("\\|") else line
    return tuple([cell.strip().replace("\\|", "|") for cell in _BETWEEN.split(line)])


def plain(text: str) -> str:
    """Write a text for a network that shows neither tables nor headings below the third level. Pure."""
    parts, at = [], 0
    for table in tables(text):
        parts += [_bold(text[at : table.start]), drawn(table.rows)]
        at = table.end
    return "".join([*parts, _bold(text[at:])])


def _bold(text: str) -> str:
    if "####" not in text or _FENCE.search(text):  # a comment of some language may begin like a heading
        return text
    return _DEEP.sub(r"**\1**", text)


def drawn(rows: Sequence[Sequence[str]]) -> str:
    """Write a table as a code block, or as a list where it is too wide or has one column. Pure."""
    from wcwidth import wcswidth  # noqa: PLC0415 - its tables are read only where a table is said

    head, *body = rows
    even = [[*row[: len(head)], *[""] * (len(head) - len(row))] for row in rows]
    wide = [max(max(0, wcswidth(row[n])) for row in even) for n in range(len(head))]
    if len(head) == 1:
        return "\n".join([f"**{head[0]}**", *[f"- {row[0]}" for row in body if row], ""])
    if sum(wide) + 3 * (len(wide) - 1) > MOST_WIDE:
        return "\n".join([*["- " + "; ".join(_named(head, row)) for row in body], ""])
    padded = [
        [cell + " " * (most - max(0, wcswidth(cell))) for cell, most in zip(row, wide, strict=True)] for row in even
    ]
    lines = [" │ ".join(row).rstrip() for row in padded]
    fence = "`" * max(3, *[len(run) + 1 for row in rows for cell in row for run in re.findall("`{3,}", cell)], 3)
    return "\n".join([fence, lines[0], "─┼─".join("─" * most for most in wide), *lines[1:], fence, ""])


def _named(head: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    yield from (f"{name}: {cell}" if name else cell for name, cell in zip(head, row, strict=False) if cell)
    yield from row[len(head) :]
