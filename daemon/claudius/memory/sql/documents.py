"""`store.documents`: portraits and the soul's state, version by version, and which of them git holds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

from claudius.errors import StaleTurn
from claudius.intent import ModelVersion, StateChange
from claudius.memory.documents import Document, KeptFile, Unarchived, state_document
from claudius.memory.sql.connection import Database
from claudius.memory.sql.core import Core
from claudius.memory.sql.rows import instant, stamp
from claudius.memory.sql.seeing import canonical
from claudius.prompt import valid


class SqlDocuments:
    """Portraits and the soul's state, version by version."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def set_model(
        self, person: str, audience: str, markdown: str, note: str, author: Literal["owner", "revert"], now: datetime
    ) -> int:
        return await self._core.write(lambda db: set_model(db, person, audience, markdown, note, author, now))

    async def correct(self, person: str, audience: str, markdown: str, *, suspect: bool, now: datetime) -> int:
        def write(db: Database) -> int:
            return set_model(db, person, audience, markdown, "set right by the person", "person", now, suspect=suspect)

        return await self._core.write(write)

    async def set_state(self, key: str, value: str, audience: str, now: datetime) -> None:
        change, note = StateChange(key=key, value=value, audience=audience), f"soul state: {key}, by the owner"
        await self._core.write(lambda db: write_state(db, (change,), stamp(now), author="owner", turn=None, note=note))

    async def document(self, document: Document) -> str | None:
        with self._core.snapshot() as db:
            return newest(db, document)

    async def has_written(self, document: Document, text: str, *, ever: bool) -> bool:
        with self._core.snapshot() as db:
            if document.person:
                asked = {"person": document.person, "audience": document.audience, "text": text, "ever": int(ever)}
                return db.one("model_written", **asked) is not None
            near = _near(db, text, ever=ever)
            return newest(db, document) == text or any(_state(db, revision) == text for revision in near)

    async def unarchived(self, limit: int) -> Sequence[Unarchived]:
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
        def write(db: Database) -> None:
            db.each("archived", ({"id": id_, "git_commit": commit} for id_, commit in commits.items()))
            for document in (*gone, *(file.document for file in files)):
                db.run("archive_file_drop", person=document.person, audience=document.audience)
            for file in files:
                person, audience = file.document.person, file.document.audience
                db.run("archive_file_put", path=file.path, person=person, audience=audience, sha256=file.sha256)

        await self._core.write(write)

    async def archive_files(self, persons: Sequence[str] | None = None) -> Sequence[KeptFile]:
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
        def write(db: Database) -> None:
            db.run("archive_forget")
            db.run("archive_files_forget")

        await self._core.write(write)

    async def history(self) -> int:
        with self._core.snapshot() as db:
            return int(db.value("history_now") or 0)

    async def known(self) -> Sequence[Document]:
        with self._core.snapshot() as db:
            return [Document(row["person"], row["audience"]) for row in db.all("models_known")]

    async def archived_commits(self) -> Mapping[str, int]:
        with self._core.beside() as db:  # perhaps a million rows
            return await asyncio.to_thread(lambda: {row["git_commit"]: row["id"] for row in db.all("archived_commits")})

    async def commit_of(self, change: int) -> str | None:
        with self._core.snapshot() as db:
            commit: str | None = db.value("commit_of", id=change)
            return commit

    async def unarchive(self, least: int) -> None:
        await self._core.write(lambda db: db.run("unarchive", least=least))


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
        person=person,
        audience=audience,
        version=version,
        markdown=markdown,
        note=note,
        author=author,
        suspect=suspect,
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
    latest = {change.key: db.one("state_of_key", key=change.key) for change in changes}
    before = {key: (row["value"], row["audience"]) for key, row in latest.items() if row is not None}
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
    """Yield changes of the state after which it may have had this text, because it contains the last value set."""
    is_near = False
    for row in db.all("state_changes"):
        if row["value"]:  # a key that returned to its default is not in the text
            is_near = f"({row['updated_at']})" in text
        if is_near and (ever or row["is_pending"]):
            yield row["revision"]


def newest(db: Database, document: Document) -> str | None:
    """Return a document's newest text; None if there is none."""
    if document.person:
        row = db.one("model_newest", person=document.person, audience=document.audience)
        return str(row["markdown"]) if row else None
    latest = db.value("state_revision")
    return None if latest is None else _state(db, latest)
