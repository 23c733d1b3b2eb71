"""The part of `SqliteRecords` for kept turns: the contents of a record, and the texts that its snapshot references."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from claudius.memory.kept_turns import snapshot_of, unpack
from claudius.memory.records import Expired
from claudius.memory.sqlite.queries import Database, Row
from claudius.memory.sqlite.rows import Decoding, parse
from claudius.recollection import PastTurn, Shown

_TEXT_OF = {"episode": "episode_text", "fact": "fact_text"}


class KeptRecords(ABC):
    """What a prompt is rebuilt from."""

    @abstractmethod
    def _snapshot(self) -> AbstractContextManager[Database]: ...

    def size(self) -> Mapping[str, Any]:
        """Return the size of the database, its number of turns and days, and whether free pages can be returned."""
        with self._snapshot() as db:
            page, pages, free, vacuum = (
                int(db.connection.execute(f"PRAGMA {name}").fetchone()[0])
                for name in ("page_size", "page_count", "freelist_count", "auto_vacuum")
            )
            row = db.one("turns_span")
        turns, days = (row[0], row[1] or 0.0) if row else (0, 0.0)
        return {"bytes": page * (pages - free), "turns": turns, "days": days, "gives_back": bool(vacuum)}

    def blob(self, sha256: str) -> bytes | None:
        """Return stored content by its hash; None if it was erased."""
        row = self._one("blob", sha256=sha256)
        return bytes(row[0]) if row else None

    def past_turn(self, conversation: str, number: int) -> PastTurn | None:
        """Return a turn as committed, its portraits without text; None if it was erased.

        Raises: Expired, RowInvalid.
        """
        row = self._one("past_kept", conversation=conversation, number=number)
        if row is None:
            return None
        turn, nonce, shown, kept, expired_at = row
        if expired_at:
            raise Expired(expired_at)
        if kept is None:
            return None
        with Decoding("turn", conversation, number):
            return PastTurn(
                turn=turn,
                nonce=nonce,
                number=number,
                entries=unpack(kept).entries,
                shown=tuple(Shown(**fields) for fields in parse(shown)),
            )

    def portrait(self, person: str, audience: str, version: int) -> str | None:
        """Return the text of one version of a portrait; None if it was erased."""
        with self._snapshot() as db:
            linked = db.one("canonical", person=person)
            for one in dict.fromkeys((person, linked[0] if linked else person)):
                row = db.one("model_version", person=one, audience=audience, version=version)
                if row is not None:
                    return str(row[0])
        return None

    def recalled(self, row: str) -> str | None:
        """Return the text of a recalled line by its row; None if it is no longer kept."""
        kind, _, number = row.partition(":")
        found = self._one(_TEXT_OF[kind], id=int(number))
        return str(found[0]) if found else None

    def _one(self, query: str, **values: Any) -> Row | None:
        with self._snapshot() as db:
            return db.one(query, **values)


def kept_of(row: dict[str, Any], calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the contents of a turn's record, in the current or an older format; attach to each call its reply."""
    packed = row.pop("kept")
    if row["expired_at"]:
        return {"attention": {}, "changes": {}, "thoughts": [], "steps": [], "snapshot": b""}
    if packed is None:
        return {name: parse(row[name]) for name in ("attention", "changes", "thoughts", "steps")}
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
    }
