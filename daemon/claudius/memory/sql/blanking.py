"""Blank what a search still finds of an erased person in rows that belong to others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from claudius.memory.database import Database
from claudius.memory.erasure import BLANK, ERASED, Probes
from claudius.memory.packing import unpacked
from claudius.memory.rows import pack
from claudius.memory.search import Needles
from claudius.memory.seen import ERASED_SNAPSHOT, KeptTurn, is_damaged, unpack

NOBODY = "erased"
"""Replaces an id."""
_WORDS = ("text", "content", "markdown", "note")
"""Fields of a record naming somebody as its person that hold their words, or words about them."""


class Blanker:
    """Removes one person's ids, folder names and excerpts from values."""

    def __init__(self, probes: Probes) -> None:
        """Remove these ids, folders and excerpts."""
        ids = [rf"(?<![\w.@-]){re.escape(one)}(?![\w.@-])" for one in probes.ids]
        folders = [rf"(?<!\w){re.escape(one)}(?!\w)" for one in probes.folders]
        self._named = re.compile("|".join((*ids, *folders)) or r"(?!)")
        self._ids = probes.ids
        self._needles = Needles((), (), probes.excerpts)

    def blank(self, value: Any) -> Any:
        """Return a column's value without them. Pure."""
        if isinstance(value, bytes):
            return self._bytes(value)
        if not isinstance(value, str):
            return value
        if value[:1] in ("{", "["):
            try:
                return msgspec.json.encode(self._tree(msgspec.json.decode(value))).decode()
            except msgspec.DecodeError:
                pass
        return "\n".join(map(self._line, value.split("\n")))

    def _bytes(self, value: bytes) -> bytes:
        try:
            return pack(self._tree(msgspec.json.decode(unpacked(value))))
        except (ValueError, msgspec.DecodeError):
            pass
        try:
            return msgspec.json.encode(self._tree(msgspec.json.decode(value)))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ERASED

    def _tree(self, value: Any) -> Any:
        if isinstance(value, str):
            return "\n".join(map(self._line, value.split("\n")))
        if isinstance(value, dict):
            if value.get("person") in self._ids:  # a portrait or a line: short ones hold no excerpt
                named = {"name": ""} if value.get("name") else {}
                value = value | named | {key: BLANK for key in _WORDS if value.get(key)}
            return {self._tree(key): self._tree(item) for key, item in value.items()}
        return [self._tree(item) for item in value] if isinstance(value, list) else value

    def _line(self, line: str) -> str:
        if self._needles.excerpts_in(line.encode("utf-8", "surrogatepass")):
            return BLANK
        return self._named.sub(NOBODY, line)


def blank_rows(db: Database, rows: Iterable[Mapping[str, Any]], blanker: Blanker) -> int:
    """Blank the person's traces in rows that a search found; a row whose key contains one is deleted."""
    changed = 0
    for row in rows:
        table, key, columns = row["table"], row["key"], row["columns"]
        where = " AND ".join(f'"{one}" = :key_{one}' for one in key)
        keys = {f"key_{one}": value for one, value in key.items()}
        names = ", ".join(f'"{one}"' for one in columns)
        found = db.connection.execute(f'SELECT {names} FROM "{table}" WHERE {where}', keys).fetchone()  # noqa: S608 - names of our own schema
        if found is None:
            continue
        values = {one: blanker.blank(found[one]) for one in columns}
        if table == "entry" and "content" in values:
            values["stems"] = ""  # they were derived from the words that are removed
        changes = ", ".join(f'"{one}" = :{one}' for one in values)
        change = f'UPDATE "{table}" SET {changes} WHERE {where}'  # noqa: S608 - names of our own schema
        db.connection.execute("SAVEPOINT blanked")
        try:
            changed += db.connection.execute(change, values | keys).rowcount
        except db.connection.IntegrityError:
            db.connection.execute("ROLLBACK TO blanked")
            changed += db.connection.execute(f'DELETE FROM "{table}" WHERE {where}', keys).rowcount  # noqa: S608 - names of our own schema
        db.connection.execute("RELEASE blanked")
        if table in ("entry", "turn"):
            # its turn's count of edits goes up, so that cached copies of it are no longer used
            of = db.connection.execute(f'SELECT conversation, number FROM "{table}" WHERE {where}', keys).fetchone()  # noqa: S608 - names of our own schema
            if of:
                db.run("turn_blanked", **of)
    return changed


def lines_of_others(content: bytes | None, ids: Sequence[str]) -> bytes | None:
    """Keep only what others said in a turn's record; blank the other lines.

    Returns nothing of a damaged record. Pure.
    """
    if content is None:
        return None
    if is_damaged(content):
        return pack(KeptTurn(snapshot=ERASED_SNAPSHOT))
    entries = tuple(
        one
        if one.person and one.person not in ids
        else replace(one, content=BLANK, person=one.person and NOBODY, name=one.name and "", metadata={})
        for one in unpack(content).entries
    )
    return pack(KeptTurn(entries=entries, snapshot=ERASED_SNAPSHOT))
