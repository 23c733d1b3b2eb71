"""What stood in the prompt of a turn, as the ids of rows. All that the soul wrote in that turn may have come from it.

Nothing is kept for it: the turn's snapshot names the rows, and when a record expires its ids take its place. An erasure
follows them from a person's own rows to every text that was written with them in sight.

Source: the design of acts, section 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from claudius.decoding import decoder
from claudius.failure import KeptFailure
from claudius.intent import Thought
from claudius.memory.packing import unpacked
from claudius.memory.rows import Decoding, parse
from claudius.recollection import Entry

ERASED = b"erased"
"""Replaces the snapshot of a turn that was erased."""
BLANK = "[erased]"
"""Replaces a line that was erased."""
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


NO_SNAPSHOT = Raw(b"null")
"""No model was asked."""


ERASED_SNAPSHOT = Raw(b'"erased"')
"""It was erased."""


class KeptTurn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a turn's record holds besides its columns."""

    entries: tuple[Entry, ...] = ()
    """The turn's own entries of working memory as committed; later prompts of its conversation show them."""
    snapshot: Raw = NO_SNAPSHOT
    """JSON from which `replay` rebuilds the prompt."""
    attention: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    thoughts: tuple[Thought, ...] = ()
    steps: tuple[str, ...] = ()
    """The cognitive steps that were asked."""
    prompt_sha256: str = ""
    """Hash of the first prompt; empty if none was built."""
    failure: KeptFailure | None = None
    """Why it says an apology or a fixed line."""
    responses: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Number of a model call → hash of its request, and its reply; calls missing here keep both in their own row."""


def unpack(content: bytes) -> KeptTurn:
    """Read a turn that `pack` wrote. Pure. Raises: ValueError, msgspec.ValidationError."""
    return decoder(KeptTurn).decode(unpacked(content))


def is_damaged(content: bytes) -> bool:
    """Return whether a packed document can no longer be read. Pure."""
    try:
        msgspec.json.decode(unpacked(content))
    except (ValueError, msgspec.MsgspecError):
        return True
    return False


def snapshot_of(kept: KeptTurn) -> bytes:
    """Return the JSON of a turn's snapshot. Pure.

    Empty if no model was asked, `ERASED` if it was erased.
    """
    snapshot = bytes(kept.snapshot)
    return {bytes(NO_SNAPSHOT): b"", bytes(ERASED_SNAPSHOT): ERASED}.get(snapshot, snapshot)


def perception_of(row: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join what the inbox keeps of a perception with its words, which working memory keeps."""
    perception: dict[str, Any] = parse(row["payload"])
    if not perception["text"]:
        said = (entry for entry in entries if entry["position"] == perception["position"])
        perception["text"] = next((entry["content"] for entry in said), "")
    return {**perception, "state": row["state"], "attempts": row["attempts"], "heard_at": row["heard_at"]}


def expired_entries(row: Mapping[str, Any], heard: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of a turn that working memory no longer holds: the ledger's preview, thoughts, words said."""
    head = {"turn": row["turn"], "at": row["at"], "name": None, "metadata": {}, "audience": row["audience"]}
    head |= {"unsaid": False, "expired": True}
    mine = [one for one in heard if one["turn"] == row["turn"]]
    kept = unpack(row["kept"]) if row["kept"] is not None else KeptTurn()
    is_erased = snapshot_of(kept) == ERASED
    lines = [
        head | {"entry_type": "userMessage", "verb": None, "person": one["person"], "content": one["preview"]}
        for one in mine
    ]
    if is_erased or not (mine or kept.entries):
        lines.append(
            head | {"entry_type": "erased" if is_erased else "expired", "verb": None, "person": None, "content": ""}
        )
    for one in kept.entries:
        if one.person is None:
            said = {"entry_type": one.entry_type.value, "verb": one.verb, "person": None, "content": one.content}
            lines.append(head | said)
    return lines


def remembered(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what working memory still holds of perceptions whose keys were deleted."""
    kept = ("at", "person", "name", "position")
    heard = (entry for entry in entries if entry["person"])
    return [{name: entry[name] for name in kept} | {"text": entry["content"]} for entry in heard]


def call_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return one model call as documents show it. Pure."""
    tokens = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "cost_usd")
    return {
        "n": row["n"],
        "purpose": row["purpose"],
        "prompt_sha256": row["request_sha256"],
        "response": row["response"],
        "stop_reason": row["stop_reason"],
        "provider": row["provider"],
        "model": row["model"],
        "ms": row["ms"],
        "usage": {name: row[name] for name in tokens} | {"estimated": bool(row["estimated"])},
    }


def usage_of(calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the calls of a turn used together. Pure."""
    usages = [call["usage"] for call in calls]
    tokens = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    costs = [usage["cost_usd"] for usage in usages if usage["cost_usd"] is not None]
    return {name: sum(usage[name] for usage in usages) for name in tokens} | {
        "cost_usd": sum(costs) if costs else None,
        "estimated": any(usage["estimated"] for usage in usages),
    }


_NOTHING_YET: Mapping[str, Any] = {
    "process": None,
    "rung": None,
    "verb": None,
    "attention": {},
    "changes": {},
    "thoughts": [],
    "steps": [],
    "shown": [],
    "flags": [],
    "entries": [],
    "calls": [],
    "response": None,
    "utterance": None,
    "apology": None,
    "provider": None,
    "model": None,
    "usage": usage_of(()),
    "delivery": [],
    "reactions": [],
    "prompt_sha256": "",
    "snapshot": None,
    "expired_at": None,
}


def unfinished(turn: str, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return what is known of a turn that is still tried, or that was given up; None if there is no such turn."""
    if not rows:
        return None
    with Decoding("inbox", turn):
        heard = [perception_of(row, ()) for row in rows]
    last, failure = heard[-1], KeptFailure.read(rows[-1]["reason"])
    if rows[-1]["state"] == "dead" and failure is None:
        failure = KeptFailure(kind="given_up", detail=str(rows[-1]["reason"]), fix="`claudius daemon logs` says more")
    return {
        "turn": turn,
        "at": last["heard_at"],
        "conversation": last["conversation"],
        "audience": last["audience"],
        "person": last["person"],
        "perception": last,
        "perceptions": heard,
        "failure": failure.document if failure else None,
        **_NOTHING_YET,
    }


def kept_of(row: dict[str, Any], calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the contents of a turn's record, in the current or an older format; attach to each call its reply."""
    packed = row.pop("kept")
    if row["expired_at"]:
        return {"attention": {}, "changes": {}, "thoughts": [], "steps": [], "snapshot": b"", "failure": None}
    if packed is None:
        return {name: parse(row[name]) for name in ("attention", "changes", "thoughts", "steps")} | {"failure": None}
    kept = unpack(packed)
    for call in calls:
        if str(call["n"]) in kept.responses:
            call["prompt_sha256"], call["response"] = kept.responses[str(call["n"])]
    return {
        "attention": kept.attention,
        "changes": kept.changes,
        "steps": list(kept.steps),
        "prompt_sha256": kept.prompt_sha256,
        "thoughts": [msgspec.to_builtins(one) for one in kept.thoughts],
        "snapshot": snapshot_of(kept),
        "failure": kept.failure.document if kept.failure else None,
    }
