"""Convert values to rows and back: instants, JSON, perceptions, entries, calls, deliveries.

A row that does not decode raises RowInvalid, which names it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from claudius.decoding import decoder, misshapen
from claudius.errors import RowInvalid
from claudius.intent import Call
from claudius.memory.database import Row
from claudius.memory.packing import PACKED, phrases
from claudius.prompt import valid
from claudius.provider import Usage
from claudius.recollection import Entry, EntryType

_OBJECT = decoder(dict[str, Any])
_STRINGS = decoder(tuple[str, ...])
_ENTRY_TYPES = {kind.value: kind for kind in EntryType}
_UNREADABLE = (msgspec.MsgspecError, ValueError, LookupError, TypeError, AttributeError)
"""Exceptions that decoding a damaged value may raise."""


class Decoding:
    """A context in which one row is decoded.

    Raises: RowInvalid, naming the row, if one of its values does not decode.
    """

    __slots__ = ("_row", "_table")

    def __init__(self, table: str, *row: object) -> None:
        """`table` and the row's primary key identify the row."""
        self._table, self._row = table, row

    def __enter__(self) -> None:
        """Enter the context."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Convert a decoding error into RowInvalid; let any other pass."""
        if isinstance(error, _UNREADABLE):
            # Errors other than the decoder's own quote the value that they fail on, so only their type is reported.
            detail = misshapen(error) if isinstance(error, msgspec.MsgspecError) else type(error).__name__
            raise RowInvalid(self._table, "/".join(map(str, self._row)), detail) from error


Readers = Mapping[str, Callable[[Any], Any]]
"""How the values of a row become a struct's, by field; any other is taken as it is."""
RENAMED = {"cls": "class", "grant": "grant_id"}
"""Columns whose names are not their fields'."""
T = TypeVar("T", bound=Struct)


def struct_of(kind: type[T], row: Row, readers: Readers) -> T:
    """Decode a row into the struct whose fields are its columns. Pure. Call it inside `Decoding`."""
    found = ((name, row[RENAMED.get(name, name)]) for name in kind.__struct_fields__)
    return kind(**{name: readers[name](value) if name in readers else value for name, value in found})


def stamp(at: datetime) -> str:
    """Format an aware instant as UTC text that sorts by time: `2026-01-01T00:00:00.000000Z`. Pure."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def instant(text: str) -> datetime:
    """Parse what `stamp` wrote, as an aware UTC datetime. Pure."""
    return datetime.fromisoformat(text)


def maybe_instant(text: str | None) -> datetime | None:
    """Parse an instant that may be missing. Pure."""
    return datetime.fromisoformat(text) if text else None


def dump(value: Any) -> str:
    """Encode a value as JSON. Strings must be valid Unicode. Pure."""
    return msgspec.json.encode(value).decode()


def pack(document: Any) -> bytes:
    """Write a value as compressed JSON, which `unpacked` reads."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zdict=phrases())
    return PACKED + compressor.compress(msgspec.json.encode(document, enc_hook=dict)) + compressor.flush()


def parse(text: str | bytes) -> Any:
    """Decode JSON. Pure."""
    return msgspec.json.decode(text)


def parse_object(text: str) -> dict[str, Any]:
    """Decode a JSON object. Pure. Raises: msgspec.DecodeError for anything else."""
    return _OBJECT.decode(text)


def parse_strings(text: str) -> tuple[str, ...]:
    """Decode a JSON list of strings. Pure. Raises: msgspec.DecodeError for anything else."""
    return _STRINGS.decode(text)


def dump_valid(value: Any) -> str:
    """Encode a value as JSON: its texts made `valid`, nothing else changed. Pure."""
    try:
        encoded = dump(value)
    except UnicodeEncodeError:
        return dump(_valid(msgspec.to_builtins(value)))
    return dump(_valid(msgspec.to_builtins(value))) if "\\u0000" in encoded else encoded


def call_row(turn: str, call: Call, at: str, conversation: str, person: str) -> dict[str, Any]:
    """Return the values of one model call's row. Pure."""
    whose = {"turn": turn, "at": at, "conversation": conversation, "person": person}
    return {**whose, **asdict(call), **asdict(call.usage), "response": valid(call.response)}


def call_of(row: Row) -> Call:
    """Decode a row of the query `calls`. Pure."""
    usage = {name: row[name] for name in Usage.__struct_fields__} | {"estimated": bool(row["estimated"])}
    call = {name: row[name] for name in Call.__struct_fields__ if name != "usage"}
    return Call(**call, usage=Usage(**usage))


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return valid(value)
    if isinstance(value, Mapping):
        return {valid(key): _valid(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_valid(item) for item in value]
    return value


def entry_of(row: Row) -> Entry:
    """Decode a row of working memory. Pure. Its errors name no row, so call it inside `Decoding`."""
    return Entry(
        entry_type=_ENTRY_TYPES[row["entry_type"]],
        content=row["content"],
        at=instant(row["at"]),
        verb=row["verb"],
        person=row["person"],
        name=row["name"],
        metadata=parse_object(row["metadata"]) if row["metadata"] else {},
        position=row["position"],
        stems=row["stems"],
    )
