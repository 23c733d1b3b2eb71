"""One turn as commands show it, put together from its rows: what was heard, what was asked, what is left of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from claudius.failure import KeptFailure
from claudius.memory.erasure import ERASED
from claudius.memory.sql.rows import Decoding, parse
from claudius.memory.turns import KeptTurn, snapshot_of, unpack


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
