"""Determine which person attaches at this machine, and to which conversation."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping
from typing import Any

NETWORK = "terminal"
NAME_CHARS = 64


def own_name() -> str:
    """Return this machine's user name in a form that fits an id, or the user number if the machine knows no name."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's arbitrary user
        name = f"uid-{os.geteuid()}"
    return re.sub(r"[^\w.@-]", "-", name)


def own_person(user: str | None = None) -> str:
    """Return the person id of this machine's user."""
    return f"{NETWORK}:local:{user or own_name()}"


def conversation_of(name: str) -> str:
    """Return the key of a terminal conversation."""
    return f"{NETWORK}:local:main:{name or 'main'}"


def seat(hello: Mapping[str, Any]) -> tuple[str, str, str, bool]:
    """Return the conversation, person id, name and ownership of a client. Raises: ValueError for an invalid name."""
    conversation, other = (str(hello.get(key) or "") for key in ("conversation", "as"))
    for word in (conversation, other):
        if len(word) > NAME_CHARS or not (word.isprintable() and word == word.strip()):
            raise ValueError(f"not a name: {word!r}")
    user = own_name()
    if other:
        return conversation_of(conversation), f"{NETWORK}:local:as-{other}", other, False
    return conversation_of(conversation), own_person(user), user, True
