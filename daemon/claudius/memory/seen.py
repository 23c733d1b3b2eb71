"""What stood in the prompt of a turn, as the ids of rows. All that the soul wrote in that turn may have come from it.

Nothing is kept for it: the turn's snapshot names the rows, and when a record expires its ids take its place. An erasure
follows them from a person's own rows to every text that was written with them in sight.

Source: the design of acts, section 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from claudius.decoding import decoder
from claudius.memory.erasure import ERASED

Name = tuple[str, ...]
"""The name of a row: its kind, and its key."""


class Seen(Struct, frozen=True, array_like=True):
    """The rows that stood in a turn's prompt."""

    first: int = 0
    """The oldest turn of its conversation that the prompt told of, itself or in a summary; 0 = none."""
    rows: tuple[Name, ...] = ()


class _Shown(Struct, frozen=True):
    person: str
    audience: str
    version: int


class _Past(Struct, frozen=True):
    number: int


class _State(Struct, frozen=True):
    key: str
    audience: str
    updated_at: datetime


class _Belief(Struct, frozen=True):
    key: str
    audience: str = ""
    peer_id: str | None = None


class _Peer(Struct, frozen=True):
    peer_id: str


class _Intuition(Struct, frozen=True):
    whisper: int


class _Quoted(Struct, frozen=True):
    person: str = ""


class _Extra(Struct, frozen=True):
    shown: tuple[_Quoted, ...] = ()


class _Perception(Struct, frozen=True):
    extra: _Extra = _Extra()


class _Known(Struct, frozen=True):
    perceptions: tuple[_Perception, ...] = ()
    state: tuple[_State, ...] = ()
    summary: Any = None
    peers: tuple[_Peer, ...] = ()
    beliefs: tuple[_Belief, ...] = ()
    intuitions: tuple[_Intuition, ...] = ()


class _Remembered(Struct, frozen=True):
    rows: tuple[str, ...] = ()


class _Plan(Struct, frozen=True):
    shown: tuple[_Shown, ...] = ()
    remembered: _Remembered = _Remembered()


class _Snapshot(Struct, frozen=True):
    """As much of a snapshot as names rows."""

    recollection: _Known
    plan: _Plan
    past: tuple[int | str | _Past, ...] = ()


def seen_in(snapshot: bytes) -> Seen:
    """Read the rows off a turn's snapshot, or off the ids that took its place. Pure. Raises: msgspec.MsgspecError."""
    if not snapshot or snapshot == ERASED:
        return Seen()
    if snapshot[:1] == b"[":
        kept: Seen = decoder(Seen).decode(snapshot)
        return kept
    found: _Snapshot = decoder(_Snapshot).decode(snapshot)
    return Seen(first=_first(found.past, is_summed_up=bool(found.recollection.summary)), rows=tuple(_rows(found)))


def packed(seen: Seen) -> bytes:
    """Return the ids as they are kept once the record of their turn has expired. Pure."""
    return msgspec.json.encode(seen)


def _first(past: Sequence[int | str | _Past], *, is_summed_up: bool) -> int:
    if is_summed_up or any(isinstance(one, str) for one in past):  # a hash, as in 0.1.0, does not say which turn
        return 1
    return min((one if isinstance(one, int) else one.number for one in past if not isinstance(one, str)), default=0)


def _rows(found: _Snapshot) -> Iterator[Name]:
    known = found.recollection
    for one in found.plan.shown:
        yield portrait(one.person, one.audience, one.version)
    for names in found.plan.remembered.rows:
        for name in names.split():
            kind, _, rest = name.partition(":")
            yield kind, rest.partition(":")[0]
    for value in known.state:
        yield state(value.key, value.audience, value.updated_at)
    for perception in known.perceptions:
        yield from (("person", quoted.person) for quoted in perception.extra.shown if quoted.person)
    for peer in known.peers:
        yield "person", peer.peer_id
    for belief in known.beliefs:
        yield "belief", belief.key, belief.audience
        if belief.peer_id:
            yield "person", belief.peer_id
    for intuition in known.intuitions:
        yield "whisper", str(intuition.whisper)


def portrait(person: str, audience: str, version: int) -> Name:
    """Name one version of a portrait. Pure."""
    return "portrait", person, audience, str(version)


def state(key: str, audience: str, at: datetime) -> Name:
    """Name one value of the soul's state. Pure."""
    return "state", key, audience, str(at.timestamp())
