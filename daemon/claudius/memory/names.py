"""File names of portraits below the memory directory, safe for any person's name. Pure."""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from pathlib import PurePosixPath

USERS = "users"
SOUL_STATE = "soul_state.md"
_OURS = re.compile(rf"{USERS}/[a-z0-9-]+-[a-z2-7]{{12}}/[a-z0-9-]+-[a-z2-7]{{12}}\.md")
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


def person_folder(person: str, name: str) -> str:
    """Return one person's folder: a readable part that changes with the name, and an id that never does. Pure."""
    return f"{slug(name) or 'person'}-{short_id(person)}"


def is_ours(path: str) -> bool:
    """Return whether a path below the memory directory has the form of a file that we write. Pure."""
    return path == SOUL_STATE or _OURS.fullmatch(path) is not None


def model_path(person: str, name: str, audience: str) -> PurePosixPath:
    """Return the path of one person's portrait in one audience, relative to the memory directory. Pure."""
    return PurePosixPath(USERS, person_folder(person, name), f"{slug(audience) or 'audience'}-{short_id(audience)}.md")
