"""Discord's text, as people see it. Pure.

Source: docs.discord.com/developers/reference, "Message Formatting".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_MENTION = re.compile(r"<@!?(\d+)>")
_TOKEN = re.compile(r"<(?:(@!?|@&|#)(\d+)|a?(:\w+:)\d+|(/[^<>:]+):\d+)>")
_BLANKS = re.compile(r"\s+")
TITLE_CHARS = 40


def named_in(raw: str) -> tuple[str, ...]:
    """Return the ids of the users that a raw text names, in order, each once. Pure."""
    return tuple(dict.fromkeys(_MENTION.findall(raw)))


def begins_with(raw: str) -> str:
    """Return the id of the user whom a raw text begins by addressing; empty where it addresses nobody. Pure."""
    found = _MENTION.match(raw.lstrip())
    return found[1] if found else ""


def read(raw: str, us: str, names: Mapping[str, str]) -> str:
    """Return a raw text as people see it: who and what it names by name. Our own (`us`) leading mention is taken away.

    `names` has the name of each user, channel and role by its id; what it lacks is shown by id. Pure.
    """
    body = raw.lstrip()
    own = _MENTION.match(body)
    body = re.sub(r"^[\s,:]+", "", body[own.end() :]) if own and own[1] == us else raw

    def shown(found: re.Match[str]) -> str:
        sigil, number, emoji, command = found.groups()
        if sigil:
            return ("#" if sigil == "#" else "@") + names.get(number, number)
        return str(emoji or command)

    return _TOKEN.sub(shown, body)


def title(text: str, instead: str) -> str:
    """Return the name of the thread that a text opens: its first characters on one line, or `instead`. Pure."""
    line = _BLANKS.sub(" ", "".join(char for char in text if char.isprintable() or char.isspace())).strip()
    return line[:TITLE_CHARS].strip() or instead
