"""Convert values to rows and back: instants, JSON, perceptions, entries, calls, deliveries.

A row that does not decode raises RowInvalid, which names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from claudius.decoding import decoder, misshapen
from claudius.errors import RowInvalid
from claudius.intent import Call, Utterance
from claudius.memory.inbox import Pending
from claudius.memory.outbox import Delivery
from claudius.memory.sql.connection import Row
from claudius.perception import Perception
from claudius.prompt import valid
from claudius.provider import Usage
from claudius.recollection import Entry, EntryType

_PERCEPTION = decoder(Perception)
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


def perception_of(payload: str) -> Perception:
    """Decode a perception that `dump_valid` wrote. Pure."""
    return _PERCEPTION.decode(payload)


def call_row(turn: str, call: Call, at: str, conversation: str, person: str) -> dict[str, Any]:
    """Return the values of one model call's row. Pure."""
    whose = {"turn": turn, "at": at, "conversation": conversation, "person": person}
    return {**whose, **asdict(call), **asdict(call.usage), "response": valid(call.response)}


def call_of(row: Row) -> Call:
    """Decode a row of the query `calls`. Pure."""
    usage = {name: row[name] for name in Usage.__struct_fields__} | {"estimated": bool(row["estimated"])}
    call = {name: row[name] for name in Call.__struct_fields__ if name != "usage"}
    return Call(**call, usage=Usage(**usage))


def pending_of(row: Row) -> Pending:
    """Decode a row of the query `oldest`, without its calls. Pure. Raises: RowInvalid."""
    with Decoding("inbox", row["seq"]):
        perception = perception_of(row["payload"])
        if perception.owes != bool(row["owes"]):
            perception = replace(perception, owes=bool(row["owes"]))
        return Pending(
            seq=row["seq"],
            perception=perception,
            turn=row["turn"],
            state=row["state"],
            attempts=row["attempts"],
            boots=row["boots"],
            not_before=maybe_instant(row["not_before"]),
            heard_at=instant(row["heard_at"]),
            inputs=parse_object(row["inputs"]),
            held=row["held"],
            is_stopped=bool(row["stopped"]),
            is_taken_here=bool(row["here"]),
        )


def utterance_row(utterance: Utterance) -> dict[str, Any]:
    """Return the values of one part's row, except its state. Pure."""
    return {**asdict(utterance), "body": valid(utterance.body), "answers": dump(utterance.answers)}


def delivery_of(row: Row) -> Delivery:
    """Decode a row of the query `deliveries`. Pure. Raises: RowInvalid."""
    with Decoding("outbox", row["key"]):
        utterance = Utterance(
            key=row["key"],
            turn=row["turn"],
            conversation=row["conversation"],
            body=row["body"],
            kind=row["kind"],
            part=row["part"],
            parts=row["parts"],
            answers=parse_strings(row["answers"]),
            person=row["person"] or "",
            verb=row["verb"],
            apology=row["apology"],
        )
        return Delivery(
            utterance=utterance,
            state=row["state"],
            attempts=row["attempts"],
            not_before=maybe_instant(row["not_before"]),
            stream_ref=row["stream_ref"],
            decided_at=instant(row["at"]),
            reason=row["reason"] or "",
        )


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
