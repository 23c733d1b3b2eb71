"""The topic `store.audit`: who decided or looked at what, when and from where. Nothing edits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

Act = Literal[
    "setting", "soul", "state", "owner", "approve", "revoke", "link", "unlink", "read", "export", "revert", "forget",
    "ensoul", "daimon", "proactive", "pause", "resume", "mute", "unmute", "status", "usage", "belief",
    "restore", "import",
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
    """`cli`, `files`, or where a command was given."""


class AuditStore(Protocol):
    """Record acts, and find those that are known only from a changed file."""

    async def note(self, entry: AuditEntry, now: datetime) -> None:
        """Record one act, durably. Raises: StoreError; then the act must not be done."""
        ...

    async def compare(self, digests: Mapping[str, str], now: datetime) -> Sequence[str]:
        """Record what changed since the last comparison without a recorded act: an edit by hand, of a file or variable.

        `digests`: `setting KEY` or `soul FILE` → a digest of what is in force. Returns the names of those recorded; the
        first comparison records nothing.
        """
        ...
