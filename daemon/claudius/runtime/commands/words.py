"""Recognises commands after `/claudius` or a leading `!`. Pure; intake, history and the adapters call it."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from claudius.perception import COMMANDS, CommandExtra, Kind, Origin, Perception, Place, private

WORDS = (
    *("whoami", "why", "correct", "forget", "export", "link", "unlink", "proactive", "ensoul", "quiet", "kothar"),
    *("home", "help", "owner", "status", "usage", "pause", "resume"),
)
COMMON = ("home", "help", "status", "usage", "pause", "resume")
"""Words that other bots, too, are given after a `!` in a channel; there they are text."""
SIGN = "\N{OCTAGONAL SIGN}"
"""The reaction on one's own message that asks to cancel an answer."""
ENSOUL = ("on", "off", "listen", "status")


class CommandLine(Struct, frozen=True):
    """One command: its word, and the rest of the line."""

    word: str
    rest: str = ""


def read_command(text: str) -> CommandLine:
    """Parse the text after `/claudius` or `!`. Pure."""
    word, _, rest = text.strip().partition(" ")
    word = word.lower()
    if word == "claudius":
        return read_command(rest)
    return CommandLine(word, rest.strip()) if word in WORDS else CommandLine("help")


def is_command(text: str, *, is_direct: bool = False) -> bool:
    """Return whether a message begins with `!` and a known command word; `is_direct`: only we are spoken to. Pure."""
    if not text.startswith("!"):
        return False
    word = text[1:].strip().partition(" ")[0].lower()
    return word == "claudius" or (word in WORDS and (word not in COMMON or (is_direct and word not in COMMON[:2])))


def as_command(perception: Perception) -> Perception:
    """Return a message that is a command as a command perception; return anything else unchanged. Pure."""
    is_said = perception.kind in (Kind.MESSAGE, Kind.MENTION) and perception.origin is Origin.EXTERNAL
    is_public = not perception.audience.startswith("private:")
    if not is_said or perception.is_bot or not is_command(perception.text, is_direct=not is_public):
        return perception
    return replace(
        perception,
        kind=Kind.COMMAND,
        conversation=apart(perception.conversation, perception.person),
        audience=private(perception.person),
        text=perception.text[1:],
        owes=False,
        following=None,
        extra=CommandExtra(where=perception.conversation, is_public=is_public),
    )


def apart(conversation: str, person: str) -> str:
    """Return the conversation that holds a person's commands, apart from the one where they are given. Pure."""
    return f"{Place.of(conversation).of_channel}:{COMMANDS}{person.rpartition(':')[2]}"


NO_CHANNEL = ("D", "U", "W")
"""How the ids of Slack's direct messages and of users, to whom the App Home belongs, begin."""


def is_direct(where: str, perception: Perception) -> bool:
    """Return whether a command was given in a direct conversation, and not in a channel. Pure."""
    place = Place.of(where)
    extra = perception.extra
    if isinstance(extra, CommandExtra) and extra.is_public is not None:
        return not extra.is_public
    return place.workspace == "@me" or (place.network == "slack" and place.channel.startswith(NO_CHANNEL))
