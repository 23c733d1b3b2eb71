"""The types of the documents that git holds beside the database: portraits and the soul's state, with versions."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


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
