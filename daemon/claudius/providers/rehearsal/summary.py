"""A summary without a model: what was said, word for word and shortened, the newest kept longest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from claudius.prompt import RecordKind
from claudius.provider import Request
from claudius.providers.rehearsal.lines import Lines, answer, say
from claudius.providers.rehearsal.reading import quoted, records, spoken

DEFAULT_CHARS = 1500
LINE_CHARS = 160
_ASKED = re.compile(r"(?<![\w-])\d{2,5}(?![\w-])")
_DATA = re.compile(r"<data-[0-9a-f]+>\n.*\n</data-[0-9a-f]+>")
_SAID = frozenset({RecordKind.MESSAGE, RecordKind.DAIMON, RecordKind.SUMMARY})
"""What somebody said aloud, and what was kept of it earlier."""


def summarise(request: Request, lines: Lines) -> str:
    """Fold a request's earlier summary and messages into the asked length. Pure."""
    limits = [int(number) for number in _ASKED.findall(_DATA.sub("", request.tail))]
    left = min(limits[-1] if limits else DEFAULT_CHARS, 100_000)
    earlier, told = "", []
    for record in _heard(request):
        if record["kind"] == RecordKind.SUMMARY:
            earlier = str(record["text"])
        elif line := _told(record, lines):
            told.append(line)
    kept: list[str] = []
    opening = quoted(earlier, left // 3) if earlier else ""
    left -= len(opening)
    for line in reversed(told):
        if (left := left - len(line) - 1) < 0:
            break
        kept.append(line)
    text = "\n".join(filter(None, [opening, *reversed(kept)]))
    return text or quoted(answer(lines.sections["summary"], {}, 0), max(left, 1))


def _heard(request: Request) -> Iterator[Mapping[str, Any]]:
    """Give every record that says something, and the soul's own lines as records, oldest first."""
    for message in request.history:
        if message.role == "user":
            yield from filter(_says, records(message.content))
        for line in spoken((message,)):
            yield {"kind": "spoken", "text": line}
    yield from filter(_says, records(request.tail))


def _says(record: Mapping[str, Any]) -> bool:
    return bool(record.get("text")) and record.get("kind") in _SAID


def _told(record: Mapping[str, Any], lines: Lines) -> str:
    words = quoted(str(record["text"]), LINE_CHARS)
    if record["kind"] == "spoken":
        return say(lines.words.answered, {"words": words}) or ""
    return say(lines.words.heard, {"name": quoted(str(record.get("from", "…")), 40), "words": words}) or words
