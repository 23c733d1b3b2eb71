"""A turn as its record keeps it: one compressed document that `why`, `replay` and an erasure read. Pure.

A document holds no text that another row holds: portraits are named by version, recalled lines by id, earlier turns by
their number, the soul and a summary by hash. What such a name stands for is read when a prompt is built again
(`Kept` in `memory/records.py`); a row that is not there any more leaves a blank.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from claudius.intent import Thought
from claudius.memory.packing import packed, unpacked
from claudius.memory.personal import ERASED
from claudius.recollection import Entry

NO_SNAPSHOT = Raw(b"null")
"""No model was asked."""


ERASED_SNAPSHOT = Raw(b'"erased"')
"""It was erased."""


class KeptTurn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a turn's record holds besides its columns."""

    entries: tuple[Entry, ...] = ()
    """The turn's own lines of working memory as they were committed: later prompts of its conversation show them."""
    snapshot: Raw = NO_SNAPSHOT
    """JSON: what `replay` rebuilds the prompt from."""
    attention: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    thoughts: tuple[Thought, ...] = ()
    steps: tuple[str, ...] = ()
    """The cognitive steps that were asked."""
    prompt_sha256: str = ""
    """Hash of the first prompt; empty = none was built."""
    responses: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Number of a model call → hash of what was asked, and the reply; what is not here stands in the call's own row."""


def pack(document: Any) -> bytes:
    """Write a value as compressed JSON. Pure."""
    return packed(msgspec.json.encode(document, enc_hook=dict))


def unpack(content: bytes) -> KeptTurn:
    """Read a turn that `pack` wrote. Pure. Raises: ValueError, msgspec.ValidationError."""
    return msgspec.json.decode(unpacked(content), type=KeptTurn)


def is_damaged(content: bytes) -> bool:
    """Tell whether a packed document cannot be read any more. Pure."""
    try:
        msgspec.json.decode(unpacked(content))
    except (ValueError, msgspec.MsgspecError):
        return True
    return False


def snapshot_of(kept: KeptTurn) -> bytes:
    """Return the JSON of a turn's snapshot; empty where no model was asked, `ERASED` where it was erased. Pure."""
    snapshot = bytes(kept.snapshot)
    return {bytes(NO_SNAPSHOT): b"", bytes(ERASED_SNAPSHOT): ERASED}.get(snapshot, snapshot)
