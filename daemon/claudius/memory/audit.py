"""The topic `store.audit`: who decided or looked at what, when and from where. Nothing edits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from claudius.memory.database import Core, Database, Decoding, dump, parse, stamp

Act = Literal[
    "setting", "soul", "state", "owner", "approve", "revoke", "link", "unlink", "read", "export", "revert", "forget",
    "ensoul", "daimon", "proactive", "pause", "resume", "mute", "unmute", "status", "usage", "belief",
    "restore", "import", "tool_add", "tool_allow", "tool_deny", "tool_grant", "tool_revoke", "tool_start",
    "tool_remove", "bridge",
]  # fmt: skip
CLI, FILES = "cli", "files"
"""Where an act was done outside of a chat: by a command of this machine's user; by an edit of a file."""


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One act. It holds ids and names of settings and files, never words of people."""

    who: str
    """The person id that did it; `files` if only the change of a file is known."""
    act: Act
    target: str = ""
    """A person id, a setting's key, a soul file; empty = nothing further."""
    origin: str = CLI
    """`cli`, `files`, where a command was given, or the conversation that a bridge showed."""


class AuditStore:
    """Record acts, and find those that are known only from a changed file."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def note(self, entry: AuditEntry, now: datetime) -> None:
        """Record one act, durably. Raises: StoreError; then the act must not be done."""
        await self._core.write(lambda db: _note(db, entry, now))

    async def compare(self, digests: Mapping[str, str], now: datetime) -> Sequence[str]:
        """Record what changed since the last comparison without a recorded act: an edit by hand, of a file or variable.

        `digests`: `setting KEY` or `soul FILE` → a digest of what is in force. Returns the names of those recorded; the
        first comparison records nothing.
        """
        return await self._core.write(lambda db: _compare(db, digests, now))


def _note(db: Database, entry: AuditEntry, now: datetime) -> None:
    db.run("audit_note", at=stamp(now), who=entry.who, act=entry.act, target=entry.target, origin=entry.origin)


def _compare(db: Database, digests: Mapping[str, str], now: datetime) -> list[str]:
    row = db.one("audited")
    changed: list[str] = []
    if row is not None:
        with Decoding("audited", 1):
            before = parse(row["digests"])
        told = {f"{one['act']} {one['target']}" for one in db.all("audit_after", seen=row["seen"])}
        names = sorted(name for name in {*before, *digests} if before.get(name) != digests.get(name))
        changed = [name for name in names if name not in told]
    for name in changed:
        act, _, target = name.partition(" ")
        db.run("audit_note", at=stamp(now), who=FILES, act=act, target=target, origin=FILES)
    db.run("audited_now", digests=dump(dict(sorted(digests.items()))), seen=db.value("audit_newest"))
    return changed
