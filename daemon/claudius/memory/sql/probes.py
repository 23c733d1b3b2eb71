"""What is searched for once somebody is erased: their ids, and pieces of their words that nobody else said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from claudius.memory.database import Cursor, Database
from claudius.memory.documents import short_id
from claudius.memory.erasure import Probes
from claudius.memory.rows import dump
from claudius.memory.search import NEEDLE_BYTES, Needles, plain
from claudius.memory.sql.erasing import ErasedPerson, named_in

EXCERPTS, EXCERPT_CHARS, EXCERPT_BYTES = 200, 26, NEEDLE_BYTES
"""A probe is at least 24 bytes (24 letters of English, 12 of Russian, 8 of Chinese), with no blank at either end."""
CANDIDATES = 8 * EXCERPTS
PAGE = 50
"""Texts read at once."""
_PLAIN = re.compile(
    r"[^\x00-\x1f\"\\<>&`\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
    f"{{1,{EXCERPT_CHARS}}}"
)
"""Text that every encoding of ours writes as plain UTF-8, or in JSON as escapes of whole characters."""
LETTERS = 5
"""A probe with this many letters or digits counts as somebody's words."""


def probes_of(db: Database, ids: Sequence[str]) -> Probes:
    """Return what must not be found anywhere once this person is erased. Reads page by page."""
    person = ErasedPerson(db, ids)
    found, stride = [], 1
    for place, row in enumerate(_read(db, "texts_of", person.values)):
        if place % stride == 0:
            found += _excerpts(row["text"] or "")
        if len(found) > CANDIDATES:  # thin out evenly, so that the rest covers everything that was said
            found, stride = found[::2], stride * 2
    left = _unsaid(db, list(dict.fromkeys(found)), person.values, "texts_of_others", "soul_texts")
    left = left[:: max(1, -(-len(left) // EXCERPTS))]
    return Probes(ids=tuple(ids), folders=tuple(map(short_id, ids)), excerpts=tuple(left))


def narrowed(db: Database, probes: Probes) -> Probes:
    """Remove from the probes what others have since said in the same words. Reads page by page."""
    left = _unsaid(db, list(probes.excerpts), {"ids": dump(list(probes.ids))}, "words_of_others")
    return Probes(ids=probes.ids, folders=probes.folders, excerpts=tuple(left))


def _unsaid(db: Database, excerpts: list[str], values: Mapping[str, Any], *queries: str) -> list[str]:
    """Return the excerpts that occur in none of the texts that these queries return."""
    needles = Needles((), (), excerpts)
    said: set[bytes] = set()
    for query in queries:
        cursor = _read(db, query, values)
        while rows := cursor.fetchmany(PAGE):
            said.update(needles.excerpts_in(b"\0".join(plain(row["text"]) or b"" for row in rows)))
    return [one for one in excerpts if one.encode() not in said]


def _read(db: Database, query: str, values: Mapping[str, Any]) -> Cursor:
    sql = db.queries[query]
    return db.connection.execute(sql, named_in(sql, values))


def _excerpts(text: str) -> list[str]:
    """Return pieces that can be found in every encoding of ours: the first, a middle one, the last. Pure."""
    pieces = [piece for piece in map(str.strip, _PLAIN.findall(text)) if len(piece.encode()) >= EXCERPT_BYTES]
    found = [piece for piece in pieces if sum(map(str.isalnum, piece)) >= LETTERS]
    return list(dict.fromkeys([*found[:1], *found[len(found) // 2 :][:1], *found[-1:]]))
