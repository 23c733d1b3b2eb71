"""The short names under which a prompt speaks of persons."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

WHO_DIGITS = 6


@lru_cache(maxsize=4096)
def who(person: str) -> str:
    """Return the short name under which a prompt speaks of a person, `p` and six hex digits. Pure."""
    return "p" + sha256(person.encode()).hexdigest()[:WHO_DIGITS]
