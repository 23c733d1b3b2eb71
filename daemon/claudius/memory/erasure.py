"""The topic `store.erasure`: remove one person from the database, and what the search afterwards looks for.

The log of erasures is kept outside the database, so that a restored backup can be checked against it. It contains no
names, only a keyed hash of each id; the key never leaves this home.

Source: the security design, section 9.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from claudius.decoding import decoder
from claudius.home import FILE_MODE, write_all
from claudius.perception import Perception

ERASED = b"erased"
"""Replaces the snapshot of a turn that was erased."""
BLANK = "[erased]"
"""Replaces a line that was erased."""


class Probes(Struct, frozen=True, kw_only=True):
    """What must not be found anywhere once a person is erased."""

    ids: tuple[str, ...]
    """Every id of that person; matched as whole words."""
    folders: tuple[str, ...]
    """The parts of folder names derived from one of the ids."""
    excerpts: tuple[str, ...]
    """Pieces of that person's words that nobody else wrote; matched anywhere."""


class Traces(Struct, frozen=True, kw_only=True):
    """By what a text of the soul's tells of a person; it goes with their rows, so it is read before these go."""

    names: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()
    """Words of theirs, reduced to stems."""
    rows: tuple[tuple[str, str], ...] = ()
    """Their moments and facts, each by its kind and its key."""


class Posted(Struct, frozen=True):
    """What the soul posted, and a network still shows."""

    conversation: str
    post: str
    """The network's own id of it."""
    at: str
    """When it was posted, UTC."""
    is_shared: bool = False
    """Whether it stands in a channel in which the erased person has written: only there are they told of it."""


class Beyond(Struct, frozen=True):
    """Something that an erasure cannot reach."""

    kind: str
    """What it is, for the person."""
    where: str = ""
    """Which one, for the owner, where that tells more."""


class Portrait(Struct, frozen=True):
    """A portrait of somebody else that lost what was written from the erased person's lines."""

    person: str
    audience: str
    version: int
    """The new version, without it."""


Posts = Callable[[Sequence[Posted]], None]
"""Is told of posts whose rows are about to go, so that a later process can still name them."""


def nowhere(_: Sequence[Posted]) -> None:
    """Do nothing, where nobody is told of posts."""


Voided = Callable[[Sequence[tuple[str, str]]], None]
"""Is told of turns that are to be thought again: the conversation and the turn of each."""


def nothing_runs(_: Sequence[tuple[str, str]]) -> None:
    """Do nothing, where no turn can be under way."""


class Begun(Struct, frozen=True, kw_only=True):
    """One erasure that is under way, or done and not told yet, as `state/erasing-*.json` keeps it."""

    ids: tuple[str, ...]
    folders: tuple[str, ...] = ()
    """Empty until the audit log knows of it; nothing is erased before."""
    excerpts: tuple[str, ...] = ()
    traces: Traces | None = None
    is_resumed: bool = False
    """Whether an earlier process has erased some of it, and counted nothing."""
    posts: tuple[Posted, ...] = ()
    """What the network still shows of it, as far as the rows that say so are gone, or about to go."""
    asked: Perception | None = None
    """The command of whoever asked in chat, so that a later process can give them the receipt."""
    receipt: Mapping[str, Any] | None = None
    """What was done, once it is, as long as whoever asked was not told, or what was deleted is not overwritten."""
    is_told: bool = False
    """Whether it was given to whoever asked."""

    @property
    def probes(self) -> Probes:
        """What must not be found anywhere."""
        return Probes(ids=self.ids, folders=self.folders, excerpts=self.excerpts)


class Erased(Struct, frozen=True, kw_only=True):
    """What was removed from the database."""

    rows: Mapping[str, int]
    """By table, the number of rows deleted or blanked."""
    derived: Mapping[str, int]
    """Those of them that were not the person's own: written with their lines in sight."""
    posts: tuple[Posted, ...]
    """What was said of it, and a network still shows."""
    portraits: tuple[Portrait, ...]
    versions: int
    """Portraits that git held, and no longer holds once it is rebuilt."""
    conversations: tuple[str, ...]
    """Every conversation that contained something of theirs."""
    audiences: tuple[str, ...]
    """Shared places whose member list must be fetched again, because one person was removed from it."""


UNENDED = "the search did not come to its end"
OVERWRITING = "overwriting"
"""The job that overwrites deleted rows."""
LEDGER, KEY = "erasures.jsonl", "erasures.key"
KEY_BYTES = 32
ALIAS, ALIAS_CHARS = "erased:", 16


class Erasures(Struct, frozen=True):
    """The log of erasures in one directory."""

    directory: Path

    @property
    def ledger(self) -> Path:
        """The path of the log: one JSON line per erasure, and one when all of it is done."""
        return self.directory / LEDGER

    def begin(self, persons: Sequence[str], at: datetime, by: str) -> int:
        """Record durably that an erasure of these ids begins. Returns where `withdraw` cuts. Raises: OSError."""
        before = self.ledger.stat().st_size if self.ledger.exists() else 0
        self._append({"at": _stamp(at), "by": by, "ids": [self._hash(one) for one in persons]})
        return before

    def withdraw(self, before: int) -> None:
        """Remove the record of the erasure that `begin` recorded last, because it was refused. Raises: OSError."""
        os.truncate(self.ledger, before)

    def finish(self, persons: Sequence[str], at: datetime) -> None:
        """Record that the erasure of these ids is complete. Raises: OSError."""
        self.done([self._hash(one) for one in persons], at)

    def done(self, hashes: Sequence[str], at: datetime) -> None:
        """Record that the erasure of these hashes is complete. Raises: OSError."""
        self._append({"at": _stamp(at), "done": list(hashes)})

    def keep(self, begun: Begun) -> None:
        """Save durably what nothing else knows once the rows are gone. Raises: OSError; then nothing is saved."""
        path = self._kept(begun.ids)
        fresh = path.with_suffix(".new")
        _write(fresh, msgspec.json.encode(begun), os.O_TRUNC)
        fresh.replace(path)

    def keep_receipt(self, begun: Begun, receipt: Mapping[str, Any], *, is_told: bool = False) -> None:
        """Keep a receipt until it was given, and until what was deleted is overwritten. Raises: OSError."""
        is_told = is_told or begun.asked is None
        if is_told and not receipt.get("later"):
            self.drop(begun.ids)
        else:
            self.keep(msgspec.structs.replace(begun, excerpts=(), traces=None, receipt=receipt, is_told=is_told))

    def waiting(self) -> list[Begun]:
        """Return each erasure whose deleted rows wait for a quiet hour."""
        return [one for one in self.kept() if one.receipt and one.receipt.get("later")]

    def kept(self) -> list[Begun]:
        """Return each erasure that has not ended, or whose receipt was not given yet."""
        found = [_read_begun(path) for path in sorted(self.directory.glob("erasing-*.json"))]
        return [one for one in found if one is not None]

    def drop(self, persons: Sequence[str]) -> None:
        """Delete what was kept of an erasure. Raises: OSError."""
        self._kept(persons).unlink(missing_ok=True)

    def _kept(self, persons: Sequence[str]) -> Path:
        return self.directory / f"erasing-{self._hash(persons[0])[:16]}.json"

    def erased_at(self) -> dict[str, str]:
        """Return when each erasure last began, by hash; UTC as text."""
        return {one: str(line["at"]) for line in self._lines() for one in line.get("ids", ())}

    def forgotten(self, persons: Iterable[str]) -> dict[str, datetime]:
        """Return the end of the second in which each of these persons was erased last; without those who never were.

        That of anybody has the key "".
        """
        erased = self.erased_at()
        if not erased:
            return {}  # there is no key to hash with
        found = {"": max(erased.values())} | {one: erased.get(self._hash(one)) for one in persons}
        return {one: datetime.fromisoformat(at) + timedelta(seconds=1) for one, at in found.items() if at}

    def last_at(self, persons: Iterable[str], by: str) -> datetime | None:
        """Return when `by` last requested an erasure of one of these persons; None if never."""
        hashes = {self._hash(one) for one in persons}
        asked = [
            line["at"] for line in self._lines() if line.get("by") == by and not hashes.isdisjoint(line.get("ids", ()))
        ]
        return datetime.fromisoformat(str(max(asked))) if asked else None

    def unfinished(self) -> dict[str, str]:
        """Return who asked for each erasure that was interrupted, by the hash of whom it is to erase."""
        left: dict[str, str] = {}
        for line in self._lines():
            left |= dict.fromkeys(line.get("ids", ()), str(line.get("by")))
            for one in line.get("done", ()):
                left.pop(one, None)
        return left

    def since(self, at: str) -> set[str]:
        """Return the hashes of persons erased since an instant; a copy made at that time may still hold them."""
        return {one for one, when in self.erased_at().items() if when >= at[: len(when) - 1]}

    def among(self, persons: Iterable[str], hashes: Iterable[str]) -> list[str]:
        """Return those of the persons whose hash is among `hashes`."""
        wanted = set(hashes)
        return [one for one in persons if wanted and self._hash(one) in wanted]

    def hashes(self, persons: Iterable[str]) -> set[str]:
        """Return the hashes of these persons."""
        return {self._hash(one) for one in persons}

    def aliases(self, persons: Iterable[str]) -> dict[str, str]:
        """Return what replaces each of these persons in the audit log once they are erased."""
        return {one: f"{ALIAS}{self._hash(one)[:ALIAS_CHARS]}" for one in persons}

    def _hash(self, person: str) -> str:
        return hmac.new(self._key(), person.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def _key(self) -> bytes:
        path = self.directory / KEY
        if not path.exists():
            fresh = path.with_suffix(".new")
            _write(fresh, secrets.token_bytes(KEY_BYTES), os.O_TRUNC)
            fresh.replace(path)
        return path.read_bytes()

    def _lines(self) -> list[dict[str, Any]]:
        try:
            return [json.loads(line) for line in self.ledger.read_text("utf-8").splitlines() if line.endswith("}")]
        except FileNotFoundError:
            return []

    def _append(self, line: dict[str, object]) -> None:
        _write(self.ledger, b"\n" + json.dumps(line).encode() + b"\n", os.O_APPEND)


def _write(path: Path, content: bytes, how: int) -> None:
    """Write all of it durably, or nothing; private to this user. Raises: OSError.

    Each line of the log starts with a line break, so one that a crash tore stays apart.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT | how, FILE_MODE)
    try:
        before = os.fstat(file).st_size
        try:
            write_all(file, content)
            os.fsync(file)
        except OSError:
            os.ftruncate(file, before)
            raise
    finally:
        os.close(file)


def _read_begun(path: Path) -> Begun | None:
    try:
        return decoder(Begun).decode(path.read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
