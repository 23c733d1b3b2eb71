"""Write the tables of a reply for a network that shows none, and split it into posts at natural pauses. Pure.

Graphemes, links, code spans and table rows stay whole; code fences are closed and reopened. A table is a code block
whose columns are padded by the width on a screen; one that is too wide for that, or has one column only, is a list.
Source: the chat design, section 5; the GitHub Flavored Markdown specification, section 4.10; Unicode UAX #11.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import accumulate

from msgspec import Struct

MOST_WIDE = 64
"""A wider table is written as a list: a code block does not wrap well on a small screen."""
_RULE = re.compile(r"^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_BETWEEN = re.compile(r"(?<!\\)\|")
_MARKER = re.compile(r"^ {0,3}(`{3,}|~{3,})")
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
        found = _MARKER.match(lines[place])
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
    if "####" not in text or _MARKER.search(text):  # a comment of some language may begin like a heading
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


ZWJ = "\u200d"
_FENCE = re.compile(r"^ {0,3}(?P<marker>`{3,20}(?=[^`\n]*$)|~{3,20}(?!~))(?P<info>[^\n]*)$", re.MULTILINE)
_WHOLE = re.compile(
    r"!?\[[^\[\]\n]{0,300}\]\([^()\s]{0,2000}\)"  # a link with its text
    r"|<[^<>\n]{1,2000}>"
    r"|(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,20}://[^\s<>]+",
    re.IGNORECASE,
)
_ROW = re.compile(r"^[ \t]*\|.*$", re.MULTILINE)
_DRAWN = re.compile(r"[^\n]*\n[─┼]+\n")
_TICKS = re.compile(r"`+")


class Fence(Struct, frozen=True):
    """A fenced code block from `start` to `end`, including its marker lines."""

    start: int
    end: int
    body: int
    """Where its first line of code begins."""
    closing: int
    """Where its closing line begins; the end if there is none."""
    opening: str
    """Its opening line: marker and info string."""
    marker: str
    is_closed: bool
    head: str = ""
    """The lines that each part of it begins with: of a drawn table its header."""


class Marks(Struct, frozen=True):
    """The places where a text must not be cut. A place is an index as in `text[:at]`, `text[at:]`."""

    text: str
    fences: tuple[Fence, ...]
    spans: tuple[tuple[int, int], ...]
    """The spans to keep whole, sorted, without nesting."""
    tables: tuple[Table, ...] = ()

    def table_at(self, at: int) -> Table | None:
        """Return the table whose rows a cut at `at` would part from its header."""
        return next((one for one in self.tables if one.body < at < one.end), None)

    def fence_at(self, at: int) -> Fence | None:
        """Return the fence whose code a cut at `at` would split."""
        index = bisect_right(self.fences, at, key=lambda fence: fence.start) - 1
        fence = self.fences[index] if index >= 0 else None
        return fence if fence and fence.start < at < fence.end else None

    def binds(self, at: int) -> bool:
        """Return whether a cut at `at` would split something that must stay whole."""
        index = bisect_right(self.spans, at, key=lambda span: span[0]) - 1
        return (index >= 0 and self.spans[index][0] < at < self.spans[index][1]) or self.joins(at)

    def joins(self, at: int) -> bool:
        """Return whether a cut at `at` would split a grapheme."""
        return 0 < at < len(self.text) and _is_one(self.text, at)


def mark(text: str) -> Marks:
    """Find everything that must not be split. Linear in the length of the text."""
    fences = tuple(_fences(text))
    found: list[tuple[int, int]] = []
    for fence in fences:  # its opening line stays with the code after it, and its closing line with the code before it
        found.append((fence.start, min(fence.body + 1, len(text))))
        if fence.is_closed:
            found.append((max(fence.start, fence.closing - 1), fence.end))
    plain, found_tables = _without(text, fences), tuple(tables(text))
    found += [(one.start, min(one.body + 1, len(text))) for one in found_tables]
    found += [match.span() for match in _WHOLE.finditer(plain)]
    found += [match.span() for match in _ROW.finditer(plain)]
    found += _code_spans(plain)
    return Marks(text, fences, _merged(found), found_tables)


def _fences(text: str) -> Iterator[Fence]:
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        marker = line["marker"]
        if opened is None:
            opened = line
        elif marker[0] == opened["marker"][0] and len(marker) >= len(opened["marker"]) and not line["info"].strip():
            yield _fence(text, opened, line)
            opened = None
    if opened is not None:
        yield _fence(text, opened, None)


def _fence(text: str, opened: re.Match[str], closed: re.Match[str] | None) -> Fence:
    body = min(opened.end() + 1, len(text))
    drawn = _DRAWN.match(text, body)
    return Fence(
        start=opened.start(),
        end=closed.end() if closed else len(text) + 1,
        body=body,
        closing=closed.start() if closed else len(text),
        opening=opened[0],
        marker=opened["marker"],
        is_closed=closed is not None,
        head=drawn[0] if drawn else "",
    )


def _without(text: str, fences: tuple[Fence, ...]) -> str:
    """Return the text with its fenced code replaced by blanks, so that all positions stay the same."""
    parts, at = [], 0
    for fence in fences:
        parts += [text[at : fence.start], re.sub(r"[^\n]", " ", text[fence.start : fence.end])]
        at = fence.end
    return "".join([*parts, text[at:]])


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find inline code: a run of backticks up to the next run of the same length on its line."""
    start = 0
    for line in text.splitlines(keepends=True):
        runs = [(match.start() + start, match.end() + start) for match in _TICKS.finditer(line)]
        later: dict[int, list[int]] = defaultdict(list)
        for begin, end in reversed(runs):
            later[end - begin].append(begin)
        past = 0
        for begin, end in runs:
            same = later[end - begin]
            same.pop()
            if begin >= past and same:
                past = same[-1] + end - begin
                yield begin, past
        start += len(line)


def _merged(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def _is_one(text: str, at: int) -> bool:
    """Return whether the characters around `at` form one grapheme. Source: UAX #29, simplified."""
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    if ZWJ in (before, after) or _extends(after):
        return not before.isspace()
    if _is_flag(before) and _is_flag(after):
        return _flags_before(text, at) % 2 == 1
    return "\u1100" <= before <= "\u11ff" and "\u1160" <= after <= "\u11ff"


def _extends(char: str) -> bool:
    return (
        unicodedata.category(char) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
    )


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flags_before(text: str, at: int) -> int:
    start = at
    while start and _is_flag(text[start - 1]):
        start -= 1
    return at - start


MOST_PARTS = 8
CUT_OFF = "…"
"""Marks the end of a reply that was longer than its posts allow."""


class Pause(IntEnum):
    """The kinds of places where a text may be cut, best last."""

    GRAPHEME = 0
    BLANK = 1
    SENTENCE = 2
    CODE_LINE = 3
    LINE = 4
    PARAGRAPH = 5


class Piece(Struct, frozen=True):
    """The text shown by one post, and the fence lines added to it."""

    raw: str
    opens: str = ""
    closes: str = ""

    @property
    def shown(self) -> str:
        """The text of the post."""
        return self.opens + self.raw + self.closes


def units(text: str) -> int:
    """Return a text's length in UTF-16 units, as chat networks count. Pure."""
    return len(text) + sum(char > "\uffff" for char in text)


def split(text: str, limit: int) -> tuple[str, ...]:
    """Split a text into posts of at most `limit` UTF-16 units each, in order; none is blank. Pure.

    Apart from added fence lines, the posts joined give the text; runs of blanks that fill a whole post are dropped.
    """
    return tuple(piece.shown for piece in pieces(text, limit))


def in_posts(text: str, limit: int, most: int = MOST_PARTS) -> tuple[str, tuple[str, ...]]:
    """Split a text into at most `most` posts. Returns the text that they show, and the posts. Pure.

    A text that is too long is cut and ends in "…".
    """
    found = pieces(text, limit)
    if len(found) <= most:
        return text, tuple(piece.shown for piece in found)
    kept = "".join(piece.raw for piece in found[:most])
    while True:
        kept = kept[: kept.rfind(" ", 0, -1)] if " " in kept[-limit // 4 : -1] else kept[: -max(1, limit // 8)]
        said = kept.rstrip() + CUT_OFF
        posts = split(said, limit)
        if len(posts) <= most:
            return said, posts


def pieces(text: str, limit: int) -> tuple[Piece, ...]:
    """Return the posts of a text together with the lines added to each. Pure."""
    if units(text) <= limit:
        return (Piece(text),) if text.strip() else ()
    return tuple(piece for piece in _Cutter(text, limit).cut() if piece.raw.strip())


class _Cutter:
    """Splits one text into pieces."""

    def __init__(self, text: str, limit: int) -> None:
        self._text, self._limit = text, limit
        self._marks: Marks = mark(text)
        self._units: Sequence[int] = [0, *accumulate(2 if char > "\uffff" else 1 for char in text)]

    def cut(self) -> Iterator[Piece]:
        start, end, fences = 0, len(self._text), self._marks.fences
        last = fences[-1] if fences and not fences[-1].is_closed else None
        while start < end:
            opens = self._opens(self._marks.fence_at(start), start)
            rest = self._units[end] - self._units[start] + units(opens) + units(self._closes(last, end))
            at = end if rest <= self._limit else self._next(start, units(opens))
            inside = last if at == end else self._marks.fence_at(at)
            yield Piece(self._text[start:at], opens, self._closes(inside, at))
            start = at

    def _opens(self, fence: Fence | None, at: int) -> str:
        """Return what reopens a fence or a table; its marker at most if that took too much of the post."""
        table = self._marks.table_at(at)
        if fence is None:
            head = self._text[table.start : table.body] if table else ""
            return head if units(head) <= self._limit // 4 else ""
        line = f"{fence.opening}\n{fence.head}"
        return line if units(line) <= self._limit // 4 else fence.marker + "\n"

    def _closes(self, fence: Fence | None, at: int) -> str:
        if fence is None:
            return ""
        return fence.marker if self._text[at - 1] == "\n" else "\n" + fence.marker

    def _next(self, start: int, opening_units: int) -> int:
        """Find the best place for the next cut: late in the post, at a natural pause."""
        fence_units = max((units(fence.marker) + 1 for fence in self._marks.fences), default=0)
        room = max(2, self._limit - opening_units - fence_units)
        furthest = bisect_right(self._units, self._units[start] + room) - 1
        middle = bisect_right(self._units, self._units[start] + min(self._limit // 2, room - 1))
        for lowest in (middle, start + 1):
            best = max(
                ((self._pause(at), at) for at in range(lowest, furthest + 1) if not self._marks.binds(at)), default=None
            )
            if best is not None:
                return best[1]
        whole = (at for at in range(furthest, start, -1) if not self._marks.joins(at))
        return next(whole, max(furthest, start + 1))

    def _pause(self, at: int) -> Pause:
        text, before = self._text, self._text[at - 1]
        if before == "\n":
            if self._marks.fence_at(at):
                return Pause.CODE_LINE
            is_paragraph = text[at - 2 : at - 1] == "\n" and text[at : at + 1] != "\n"
            return Pause.PARAGRAPH if is_paragraph else Pause.LINE
        if not before.isspace():
            return Pause.SENTENCE if before in "。！？" else Pause.GRAPHEME
        return Pause.SENTENCE if text[max(0, at - 4) : at].rstrip()[-1:] in tuple(".!?…") else Pause.BLANK
