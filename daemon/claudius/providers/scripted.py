"""Provide the test double: it says what it is given, fails on request, and records every request."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from claudius import errors
from claudius.config.load import Loaded
from claudius.errors import BadConfiguration, ProviderError
from claudius.home import Home
from claudius.provider import Delta, Done, Event, Request, Reset, StopReason, Usage, estimate

NAME = "scripted"
FILE = "CLAUDIUS_SCRIPTED_FILE"
"""Environment variable: a file of JSON lines, one reply each, used in order by the process under test. After them comes
the default reply."""
RECORD = "CLAUDIUS_SCRIPTED_RECORD"
"""Environment variable: a file to which each request is appended as one JSON line, for a test in another process to
read."""

_KINDS: Mapping[str, type[ProviderError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, ProviderError) and kind is not ProviderError
}


class Line(Struct, frozen=True, kw_only=True):
    """One reply: its deltas, and how it misbehaves."""

    deltas: tuple[str, ...] = ()
    stop_reason: StopReason = "end"
    usage: Usage | None = None
    """None = estimated as characters / 4 and marked as estimated."""
    session: str | None = None
    fault: ProviderError | None = None
    """Raised after `after` deltas. None = the reply is complete."""
    after: int = 0
    hang: bool = False
    """Hang for ever after `after` deltas."""
    reset_after: int | None = None
    """Send a reset after this many deltas: they are void and the reply starts again."""
    delay_s: float = 0.0
    """Seconds before the first delta."""
    gap_s: float = 0.0
    """Seconds before each further delta."""


Reply = str | Sequence[str] | Line | ProviderError | Callable[[Request], "str | Sequence[str] | Line | ProviderError"]

DEFAULT = "<internal_monologue>It was asked.</internal_monologue>\n<external_dialogue>So it is.</external_dialogue>"


def line(reply: Reply, request: Request) -> Line:
    """Convert any form of a reply to a line. An error alone is a fault before the first delta."""
    match reply:
        case Line():
            return reply
        case str():
            return Line(deltas=(reply,) if reply else ())
        case ProviderError():
            return Line(fault=reply)
        case Sequence():
            return Line(deltas=tuple(reply))
        case _:
            return line(reply(request), request)


@dataclass(slots=True)
class Scripted:
    """A provider with prepared replies. They are used in order; when none is left, `default` is used."""

    replies: Iterable[Reply] = ()
    default: Reply = DEFAULT
    record: Callable[[Request], None] | None = None
    model: str = NAME
    name: str = NAME
    sees: bool = True
    requests: list[Request] = field(default_factory=list)
    """Every request, oldest first."""
    open: int = 0
    """Calls in progress: 0 when every caller has finished or closed."""
    closed: bool = False
    _left: Iterator[Reply] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._left = iter(self.replies)

    def say(self, *replies: Reply) -> None:
        """Replace the remaining replies with these."""
        self._left = iter(replies)

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the next reply. Raises: the line's fault."""
        self.requests.append(request)
        if self.record:
            self.record(request)
        said = line(next(self._left, self.default), request)
        self.open += 1
        try:
            async with aclosing(self._speak(said, request)) as events:
                async for event in events:
                    yield event
        finally:
            self.open -= 1

    async def _speak(self, said: Line, request: Request) -> AsyncGenerator[Event, None]:
        await asyncio.sleep(said.delay_s)
        if said.reset_after is not None:
            for text in said.deltas[: said.reset_after]:
                yield Delta(text)
            yield Reset()
        for number, text in enumerate(said.deltas):
            await self._break(said, number)
            if number and said.gap_s:
                await asyncio.sleep(said.gap_s)
            yield Delta(text)
        await self._break(said, len(said.deltas))
        text = "".join(said.deltas)
        yield Done(
            text=text,
            usage=said.usage or estimate(request, text),
            stop_reason=said.stop_reason,
            session=said.session,
            provider=self.name,
            model=self.model,
        )

    async def _break(self, said: Line, number: int) -> None:
        if number != min(said.after, len(said.deltas)):
            return
        if said.hang:
            await asyncio.Event().wait()
        if said.fault:
            said.fault.provider = said.fault.provider or self.name
            raise said.fault

    async def aclose(self) -> None:
        """Note in `closed` that it was called, for a test to look at."""
        self.closed = True


def read_lines(path: Path) -> list[Line]:
    """Read a file of replies: each line a string, a list of deltas, or an object.

    An object holds `text` or `deltas`, and any of `stop_reason`, `error` (a class name of `errors.py`), `message`,
    `after_s`, `after`, `hang`, `reset_after`, `delay_s`, `gap_s`, `session`, `usage`.

    Raises: BadConfiguration.
    """
    try:
        texts = path.read_text("utf-8").splitlines()
        return [_parse(msgspec.json.decode(text)) for text in texts if text.strip()]
    except (OSError, ValueError, TypeError, KeyError, msgspec.MsgspecError) as error:
        raise BadConfiguration(str(path), "", f"cannot be used ({error})", f"mend it, or unset {FILE}") from error


def _parse(found: Any) -> Line:
    if isinstance(found, str):
        return Line(deltas=(found,))
    if isinstance(found, list):
        return Line(deltas=tuple(found))
    if not isinstance(found, dict):
        raise TypeError("a reply is a string, a list or an object")
    text = found.pop("text", None)
    kind, message, after_s = found.pop("error", None), found.pop("message", None), found.pop("after_s", None)
    deltas = tuple(found.pop("deltas", (text,) if text else ()))
    usage = Usage(**found.pop("usage")) if "usage" in found else None
    fault = _KINDS[kind](message, after_s=after_s) if kind else None
    return Line(deltas=deltas, usage=usage, fault=fault, **found)


def build(loaded: Loaded, home: Home) -> Scripted:
    """Build a provider from the environment of the process under test. Raises: BadConfiguration."""
    del loaded, home
    source, target = os.environ.get(FILE), os.environ.get(RECORD)
    return Scripted(
        read_lines(Path(source)) if source else (),
        record=partial(_record, Path(target)) if target else None,
    )


def _record(path: Path, request: Request) -> None:
    with path.open("ab") as file:
        file.write(msgspec.json.encode(asdict(request) | {"known": ""}) + b"\n")
