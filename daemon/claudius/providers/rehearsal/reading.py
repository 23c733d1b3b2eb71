"""Parse a request: the records between the data markers, the requested steps, and what was said before."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from claudius.prompt import RecordKind
from claudius.provider import Message, Request

_RECORD = re.compile(r"<data-([0-9a-f]+)>\n(.*)\n</data-\1>")
_SPOKEN = re.compile(r"<external_dialogue(?:\s[^>]*)?>(.*?)</external_dialogue>", re.DOTALL)
_LT = re.compile(r"[<＜﹤]|&(?:lt|#0*60|#x0*3c);?|\\u003c", re.IGNORECASE)
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class Model(Struct, frozen=True):
    """One user model of the speaker, as last shown."""

    markdown: str
    writable: bool

    def body(self, section: str) -> str:
        """Return the text under a level-2 heading, matched without case, or "" if there is none."""
        _, *parts = re.split(r"^##[ \t]+(.*)$", self.markdown, flags=re.MULTILINE)
        bodies = {heading.strip().casefold(): text for heading, text in zip(parts[::2], parts[1::2], strict=True)}
        return bodies.get(section.casefold(), "").strip()

    def notes(self) -> Iterator[str]:
        """Yield the lines with content, without headings and bullets."""
        for line in self.markdown.splitlines():
            text = re.sub(r"^[-*•\s]+", "", line).strip()
            if text and not text.startswith("#"):
                yield text


class Seen(Struct, frozen=True, kw_only=True):
    """Everything on which the reply is based."""

    asked: tuple[str, ...]
    """Every word of the This Turn section that could be a step's name, in order."""
    message: str
    """The current message. Several messages are joined by a line break."""
    is_inner: bool
    """Nobody said it: it comes from the soul's own schedule or occasion."""
    name: str
    """The speaker's display name."""
    said: tuple[str, ...]
    """The speaker's earlier messages here, oldest first."""
    spoken: tuple[str, ...]
    """The soul's own earlier lines here, oldest first."""
    models: tuple[Model, ...]
    state: dict[str, str]
    summary: str
    title: str
    headings: tuple[str, ...]


def read(request: Request) -> Seen:
    """Parse the request of one turn. Pure."""
    opening, history = _opening(request)
    tail = list(records(f"{opening}\n{request.tail}"))
    heard = [record for record in tail if _kind(record) == RecordKind.MESSAGE]
    who = heard[-1].get("who") if heard else None
    before = [record for message in history if message.role == "user" for record in records(message.content)]
    shown = [*before, *tail]
    headings = re.findall(r"^## +(.+?) *$", request.system, re.MULTILINE)
    return Seen(
        asked=_asked(request.tail),
        message="\n".join(_text(record) for record in heard),
        is_inner=not heard,
        name=str(heard[-1].get("from", "")) if heard else "",
        said=tuple(
            _text(record) for record in before if _kind(record) == RecordKind.MESSAGE and record.get("who") == who
        ),
        spoken=spoken(history),
        models=_models(shown, who),
        state=next(
            ({key: str(value) for key, value in r.items()} for r in tail if _kind(r) == RecordKind.SOUL_STATE), {}
        ),
        summary=next((_text(record) for record in reversed(shown) if _kind(record) == RecordKind.SUMMARY), ""),
        title=next(iter(re.findall(r"^# +(.+?) *$", request.system, re.MULTILINE)), ""),
        headings=tuple(headings[:4]),
    )


def _opening(request: Request) -> tuple[str, Sequence[Message]]:
    """Split off this turn's opening message from earlier history, if part of the turn was already asked. Pure."""
    if "## Current Message" in request.tail or len(request.history) < 2:
        return "", request.history
    *before, opening, _ = request.history
    return (opening.content, before) if "## Current Message" in opening.content else ("", request.history)


def records(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the records between data markers, in order. Pure."""
    for match in _RECORD.finditer(text):
        try:
            record = json.loads(match[2])
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def spoken(history: Sequence[Message]) -> tuple[str, ...]:
    """Return the soul's own lines in a history, oldest first. Pure."""
    said = (_SPOKEN.findall(message.content) for message in history if message.role == "assistant")
    return tuple(line.strip() for lines in said for line in lines)


def quoted(text: str, chars: int) -> str:
    """Reduce foreign text to one line of at most `chars` characters in which no parser finds a tag. Pure."""
    line = _BLANKS.sub(" ", _LT.sub("‹", text)).strip()
    if len(line) <= chars:
        return line
    cut = line[: chars - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[chars // 2 :] else cut).rstrip(" ,;:.") + "…"


def _kind(record: Mapping[str, Any]) -> str:
    return str(record.get("kind", ""))


def _text(record: Mapping[str, Any]) -> str:
    return str(record.get("text", ""))


def _asked(tail: str) -> tuple[str, ...]:
    _, found, turn = tail.partition("## This Turn\n")
    return tuple(re.findall(r"[a-z]+(?:_[a-z]+)+", turn.partition("\n## ")[0])) if found else ()


def _models(shown: Sequence[Mapping[str, Any]], who: Any) -> tuple[Model, ...]:
    models: list[Model] = []
    for record in shown:
        if _kind(record) != RecordKind.USER_MODEL or record.get("who") != who or record.get("above"):
            continue
        writable = bool(record.get("writable"))
        models = [Model(_text(record), writable)] if writable else [*models, Model(_text(record), writable)]
    return tuple(models)
