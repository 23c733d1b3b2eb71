"""The topic `store.documents`: portraits and the soul's state, version by version, and which of them git holds.

The names of their files below the memory directory are safe for any person's name.

The pure functions parse, merge and render a document's markdown.
"""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Literal

from msgspec import Struct

from claudius.errors import StaleTurn
from claudius.intent import ModelVersion, StateChange
from claudius.memory.database import Core, Database, dump, in_thread, instant, stamp
from claudius.memory.seeing import canonical
from claudius.prompt import valid
from claudius.recollection import StateKey

_STATE_LINE = re.compile(r"[-*] (?P<key>\w+):(?P<value>.*?)(?:\(\d{4}-\d\d-\d\dT[\d:.]+Z\))?\s*$")
_STATE_KEYS = {key.value.casefold(): key.value for key in StateKey}
_HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)


class Document(Struct, frozen=True):
    """A portrait of one person in one audience; if both are empty, the soul's state."""

    person: str = ""
    audience: str = ""


class KeptFile(Struct, frozen=True, kw_only=True):
    """The path of a document below the memory directory, and the hash of the bytes last written or taken over.

    An empty hash means that it is about to be written there for the first time.
    """

    document: Document
    path: str
    sha256: str
    is_gone: bool = False
    """The document is not kept any more, so the file is to be removed."""


class Unarchived(Struct, frozen=True, kw_only=True):
    """A change that git does not hold yet, with the whole text of its document after it."""

    id: int
    document: Document
    version: int
    """The version of a portrait; 0 for the soul's state."""
    at: datetime
    author: str
    note: str
    turn: str | None
    name: str
    """The person's current display name."""
    markdown: str


USERS = "users"
SOUL_STATE = "soul_state.md"
_OURS = re.compile(rf"{USERS}/[a-z0-9-]+-[a-z2-7]{{12}}/[a-z0-9-]+-[a-z2-7]{{12}}\.md")
OUR_PATHS = (SOUL_STATE, f":(glob){USERS}/*-{'?' * 12}/*-{'?' * 12}.md")
"""The same for git."""
_SLUG_CHARS = 40
_ID_CHARS = 12
"""Base32 characters: 60 bits of a SHA-256, so that two of a million ids collide with a probability below 10⁻⁶."""


def slug(text: str) -> str:
    """Return the readable part of a name: at most 40 of `a-z 0-9 -`, with no hyphen at either end. Pure."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text)).casefold()
    marked = "".join(char for char in plain if not unicodedata.combining(char))
    return re.sub(r"[^a-z0-9]+", "-", marked).strip("-")[:_SLUG_CHARS].strip("-")


def short_id(text: str) -> str:
    """Return a 12-character id derived from this exact text. Pure."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest)[:_ID_CHARS].decode().lower()


def is_ours(path: str) -> bool:
    """Return whether a path below the memory directory has the form of a file that we write. Pure."""
    return path == SOUL_STATE or _OURS.fullmatch(path) is not None


def model_path(person: str, name: str, audience: str) -> PurePosixPath:
    """Return the path of one person's portrait in one audience, relative to the memory directory. Pure."""
    folder = f"{slug(name) or 'person'}-{short_id(person)}"  # its id never changes
    return PurePosixPath(USERS, folder, f"{slug(audience) or 'audience'}-{short_id(audience)}.md")


def sections(markdown: str) -> dict[str, str]:
    """Split a portrait at its level-2 headings: heading to body; text before the first is under "". Pure.

    A heading that occurs twice keeps both bodies, in order, at its first position.
    """
    first, *rest = _HEADING.split(markdown)
    found = {"": first.strip()} if first.strip() else {}
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        found[heading] = "\n\n".join(part for part in (found.get(heading, ""), body.strip()) if part)
    return found


def joined(mine: str, theirs: str) -> str:
    """Merge two portraits of one person section by section, the first's words first, without repeating text. Pure."""
    merged = sections(mine)
    by_name = {heading.casefold(): heading for heading in merged}
    for heading, body in sections(theirs).items():
        kept = heading if heading in merged else by_name.setdefault(heading.casefold(), heading)
        old = merged.get(kept, "")
        if body and body not in old:
            merged[kept] = f"{old}\n\n{body}" if old else body
        else:
            merged.setdefault(kept, old)
    parts = [f"## {heading}\n{body}".strip() if heading else body for heading, body in merged.items()]
    return "\n\n".join(parts) + "\n"


def state_document(rows: Iterable[Sequence[Any]]) -> str:
    """Render the soul's state as the markdown that git holds: one heading per audience, one line per key. Pure.

    `rows` are (key, audience, value, instant), in any order. An empty value is the key's default and is left out.
    """
    by_audience: dict[str, list[str]] = {}
    for key, audience, value, at in sorted(rows, key=lambda row: (row[1] != "self", row[1], row[0])):
        if value:
            by_audience.setdefault(audience, []).append(f"- {key}: {' '.join(value.splitlines())} ({at})")
    parts = [f"## {audience}\n" + "\n".join(lines) for audience, lines in by_audience.items()]
    return "\n\n".join(["# Soul state", *parts]) + "\n"


def read_state_document(text: str) -> list[tuple[str, str, str]]:
    """Parse what `state_document` wrote, possibly edited by hand: (audience, key, value) of known keys. Pure."""
    found = []
    audience = ""
    for line in text.splitlines():
        if line.startswith("## "):
            audience = line[3:].strip()
        match = _STATE_LINE.match(line)
        if match and audience and match["key"].casefold() in _STATE_KEYS:
            found.append((audience, _STATE_KEYS[match["key"].casefold()], match["value"].strip()))
    return found


class DocumentStore:
    """Versions written by hand, and the record of what the archive worker has committed."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def set_model(
        self, person: str, audience: str, markdown: str, note: str, author: Literal["owner", "revert"], now: datetime
    ) -> int:
        """Write a new version of one user model by hand; return its number."""
        return await self._core.write(lambda db: set_model(db, person, audience, markdown, note, author, now))

    async def correct(self, person: str, audience: str, markdown: str, *, suspect: bool, now: datetime) -> int:
        """Write a new version of a person's model in that person's own words; return its number."""

        def write(db: Database) -> int:
            return set_model(db, person, audience, markdown, "set right by the person", "person", now, suspect=suspect)

        return await self._core.write(write)

    async def set_state(self, key: str, value: str, audience: str, now: datetime) -> None:
        """Set one soul-state value by hand."""
        change, note = StateChange(key=key, value=value, audience=audience), f"soul state: {key}, by the owner"
        await self._core.write(lambda db: write_state(db, (change,), stamp(now), author="owner", turn=None, note=note))

    def document(self, document: Document) -> str | None:
        """Return a document's newest text; None if there is none."""
        with self._core.snapshot() as db:
            return newest(db, document)

    def has_written(self, document: Document, text: str, *, ever: bool) -> bool:
        """Return whether a document's newest version, or one that git lacks, is this text; `ever`: any version."""
        with self._core.snapshot() as db:
            if document.person:
                asked = {"person": document.person, "audience": document.audience, "text": text, "ever": int(ever)}
                return db.one("model_written", **asked) is not None
            near = _near(db, text, ever=ever)
            return newest(db, document) == text or any(_state(db, revision) == text for revision in near)

    def unarchived(self, limit: int) -> Sequence[Unarchived]:
        """Return changes of user models and of the soul's state that git does not hold yet, oldest first."""
        with self._core.snapshot() as db:
            return [
                Unarchived(
                    id=row["id"],
                    document=Document(row["person"] or "", row["audience"] or ""),
                    version=row["version"] or 0,
                    at=instant(row["at"]),
                    author=row["author"],
                    note=row["note"],
                    turn=row["turn"],
                    name=row["name"],
                    markdown=row["markdown"] if row["document"] == "user_model" else _state(db, row["id"]),
                )
                for row in db.all("unarchived", most=limit)
            ]

    async def archived(
        self, commits: Mapping[int, str], files: Sequence[KeptFile], gone: Sequence[Document] = ()
    ) -> None:
        """Record which commit holds which change (one that has a commit keeps it), and the files' current paths."""

        def write(db: Database) -> None:
            db.each("archived", ({"id": id_, "git_commit": commit} for id_, commit in commits.items()))
            for document in (*gone, *(file.document for file in files)):
                db.run("archive_file_drop", person=document.person, audience=document.audience)
            for file in files:
                person, audience = file.document.person, file.document.audience
                db.run("archive_file_put", path=file.path, person=person, audience=audience, sha256=file.sha256)

        await self._core.write(write)

    def archive_files(self, persons: Sequence[str] | None = None) -> Sequence[KeptFile]:
        """Return where git holds which document: all, or those of some persons ("" is the soul's state)."""
        with self._core.snapshot() as db:
            if persons is None:
                rows = db.all("archive_files")
            else:
                rows = [row for person in persons for row in db.all("archive_files_of", person=person)]
            return [
                KeptFile(
                    document=Document(row["person"], row["audience"]),
                    path=row["path"],
                    sha256=row["sha256"],
                    is_gone=bool(row["is_gone"]),
                )
                for row in rows
            ]

    async def archive_anew(self) -> None:
        """Forget everything that git holds, so that it is rebuilt from every version."""

        def write(db: Database) -> None:
            db.run("archive_forget")
            db.run("archive_files_forget")

        await self._core.write(write)

    def history(self) -> int:
        """Return how often something went that git may hold; a history that was written before is written anew."""
        return int(self._core.value("history_now") or 0)

    def known(self) -> Sequence[Document]:
        """Return every portrait that there is."""
        return [Document(row["person"], row["audience"]) for row in self._core.look("models_known")]

    async def archived_commits(self) -> Mapping[str, int]:
        """Return which commit holds which change: its number by the commit."""
        with self._core.beside() as db:  # perhaps a million rows
            return await in_thread(lambda: {row["git_commit"]: row["id"] for row in db.all("archived_commits")})

    def last_commit(self) -> str | None:
        """Return the commit that holds the newest change that git holds; None if it holds none."""
        commit: str | None = self._core.value("last_commit")
        return commit

    def commit_of(self, change: int) -> str | None:
        """Return the commit that holds a change; None if git lacks it, or there is no such change any more."""
        commit: str | None = self._core.value("commit_of", id=change)
        return commit


def set_model(
    db: Database,
    person: str,
    audience: str,
    markdown: str,
    note: str,
    author: Literal["owner", "revert", "person"],
    now: datetime,
    *,
    suspect: bool = False,
) -> int:
    """Write the next version of a user model; return its number. An unchanged text creates no version."""
    person = canonical(db, person)
    newest = db.one("model_newest", person=person, audience=audience)
    if newest and newest["markdown"] == markdown:
        return int(newest["version"])
    version = (newest["version"] if newest else 0) + 1
    model = ModelVersion(
        person=person, audience=audience, version=version, markdown=markdown, note=note, author=author, suspect=suspect
    )
    write_model(db, model, stamp(now), None)
    return version


def write_model(db: Database, model: ModelVersion, at: str, turn: str | None) -> None:
    """Write the next version of one user model. Raises: StaleTurn if it is not the next."""
    newest = db.one("model_newest", person=model.person, audience=model.audience)
    if model.version != (newest["version"] if newest else 0) + 1:
        raise StaleTurn("the user model was changed while this turn was thought")
    revision = db.value(
        "revision_new", document="user_model", at=at, author=model.author, note=valid(model.note), turn=turn
    )
    db.run("model_retire", person=model.person, audience=model.audience)
    db.run(
        "model_new",
        person=model.person,
        audience=model.audience,
        version=model.version,
        markdown=valid(model.markdown),
        suspect=model.suspect,
        revision=revision,
    )


def write_state(
    db: Database, changes: tuple[StateChange, ...], at: str, *, author: str, turn: str | None, note: str
) -> None:
    """Write new values of the soul's state as one revision; unchanged values create none."""
    latest = db.all("state_of_keys", keys=dump([change.key for change in changes]))
    before = {row["key"]: (row["value"], row["audience"]) for row in latest}
    moved = [change for change in changes if before.get(change.key) != (change.value, change.audience)]
    if not moved:
        return
    revision = db.value("revision_new", document="soul_state", at=at, author=author, note=note, turn=turn)
    for change in moved:
        db.run("state_retire", key=change.key, audience=change.audience)
        db.run(
            "state_new", key=change.key, audience=change.audience, value=valid(change.value), at=at, revision=revision
        )


def _state(db: Database, revision: int) -> str:
    """Return the document of the soul's state as it was after a revision."""
    rows = db.all("state_as_of", revision=revision)
    return state_document((row["key"], row["audience"], row["value"], row["updated_at"]) for row in rows)


def _near(db: Database, text: str, *, ever: bool) -> Iterator[int]:
    """Yield changes of the state after which it may have had this text: their value stands in it, or went."""
    for row in db.all("state_changes"):
        if (ever or row["is_pending"]) and (not row["value"] or f"({row['updated_at']})" in text):
            yield row["revision"]


def newest(db: Database, document: Document) -> str | None:
    """Return a document's newest text; None if there is none."""
    if document.person:
        row = db.one("model_newest", person=document.person, audience=document.audience)
        return str(row["markdown"]) if row else None
    latest = db.value("state_revision")
    return None if latest is None else _state(db, latest)
