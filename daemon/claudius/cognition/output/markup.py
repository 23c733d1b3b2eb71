"""Find the parts of a Markdown text that must not be split: graphemes, links, code spans, table rows, fences. Pure."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from msgspec import Struct

ZWJ = "\u200d"
_FENCE = re.compile(r"^ {0,3}(?P<marker>`{3,20}(?=[^`\n]*$)|~{3,20}(?!~))(?P<info>[^\n]*)$", re.MULTILINE)
_WHOLE = re.compile(
    r"!?\[[^\[\]\n]{0,300}\]\([^()\s]{0,2000}\)"  # a link with its text
    r"|<[^<>\n]{1,2000}>"
    r"|(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,20}://[^\s<>]+",
    re.IGNORECASE,
)
_ROW = re.compile(r"^[ \t]*\|.*$", re.MULTILINE)
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


class Marks(Struct, frozen=True):
    """The places where a text must not be cut. A place is an index as in `text[:at]`, `text[at:]`."""

    text: str
    fences: tuple[Fence, ...]
    spans: tuple[tuple[int, int], ...]
    """The spans to keep whole, sorted, without nesting."""

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
    found = [*_fence_spans(text, fences)]
    plain = _without(text, fences)
    found += [match.span() for match in _WHOLE.finditer(plain)]
    found += [match.span() for match in _ROW.finditer(plain)]
    found += _code_spans(plain)
    return Marks(text, fences, _merged(found))


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
    return Fence(
        start=opened.start(),
        end=closed.end() if closed else len(text) + 1,
        body=min(opened.end() + 1, len(text)),
        closing=closed.start() if closed else len(text),
        opening=opened[0],
        marker=opened["marker"],
        is_closed=closed is not None,
    )


def _fence_spans(text: str, fences: tuple[Fence, ...]) -> Iterator[tuple[int, int]]:
    """Keep a fence's opening line with the code after it, and its closing line with the code before it."""
    for fence in fences:
        yield fence.start, min(fence.body + 1, len(text))
        if fence.is_closed:
            yield max(fence.start, fence.closing - 1), fence.end


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
