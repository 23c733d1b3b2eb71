"""Provide the embedded default: a deterministic offline voice that remembers, recalls, and says that it is no model."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path

from msgspec.structs import replace

from claudius.config import Loaded
from claudius.errors import BadSoul
from claudius.home import Home, shipped
from claudius.provider import Delta, Done, Event, Provider, Request, estimate
from claudius.providers.rehearsal.lines import Lines, answer, unused
from claudius.providers.rehearsal.reply import reply
from claudius.soul import SoulFile, SoulSource

__all__ = ["FILE", "Lines", "Rehearsal", "build", "greeting", "reply"]

NAME = "rehearsal"
FILE = "rehearsal.md"
PIECE_CHARS = 24

log = logging.getLogger(__name__)


class Rehearsal:
    """The rehearsal provider. Its lines are read again whenever their file changes."""

    name = NAME
    model = NAME

    def __init__(self, source: SoulSource) -> None:
        """Use the lines of a soul. Raises: BadSoul if not even the shipped ones can be read."""
        self._source = source
        self._file = _lines_file(source)
        self._shipped = _lines_file(SoulSource(shipped("soul"), shipped("soul"), ()))
        self.lines = self._read(self._file) or Lines.of(self._shipped)

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Yield the reply in small pieces, without delay."""
        file = _lines_file(self._source)
        if file is not self._file:
            self._file, self.lines = file, self._read(file) or self.lines
        text = reply(request, self.lines)
        for start in range(0, len(text), PIECE_CHARS):
            yield Delta(text[start : start + PIECE_CHARS])
        usage = replace(estimate(request, text), cost_usd=0.0)
        yield Done(text=text, usage=usage, provider=self.name, model=self.model)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    def _read(self, file: SoulFile) -> Lines | None:
        try:
            return Lines.of(file, self._shipped)
        except BadSoul as problem:
            log.warning("rehearsal lines are not in force: %s", problem.message)
            return None


def _lines_file(source: SoulSource) -> SoulFile:
    found = source.current().files.get(FILE)
    if not found:
        raise next(iter(source.problems), None) or BadSoul(FILE, 0, "is missing", "install Claudius again")
    return found


def greeting(home: Home, name: str = "") -> str:
    """Return the soul's greeting to somebody whom it has not met, from its lines: no model is asked.

    Empty if its lines hold none. Raises: BadSoul.
    """
    source = SoulSource(home.soul, shipped("soul"), ())
    section = Rehearsal(source).lines.sections.get("greeting")
    title = re.search(r"^# +(.+?) *$", source.current().text("soul.md"), re.MULTILINE)
    return answer(section, {"soul": title[1].partition(",")[0] if title else "", "name": name}, 0) if section else ""


def misfits(directory: Path) -> list[BadSoul]:
    """Return what does not fit in a home's own lines: why they are not in force, or which of them are never used."""
    soul = _lines_file(SoulSource(shipped("soul"), shipped("soul"), ()))
    own = SoulSource(directory, shipped("soul"), ()).current().files.get(FILE)
    if own is None or own.source == soul.source:
        return []
    try:
        Lines.of(own, soul)
    except BadSoul as problem:
        return [problem]
    return list(unused(own, soul))


def build(loaded: Loaded, home: Home) -> Provider:
    """Build the provider, with the home's lines taking precedence over the shipped ones. Raises: BadSoul."""
    del loaded
    return Rehearsal(SoulSource(home.soul, shipped("soul"), ()))
