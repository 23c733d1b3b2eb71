"""Stopping: who asks for it, read before the queue, so that nothing has to be thought to the end first.

Source: the chat design, section 4, "stop".
"""

from __future__ import annotations

from claudius.config import Config
from claudius.perception import Kind, Perception

WORD = "!stop"
SIGN = "\N{OCTAGONAL SIGN}"


def is_stop(perception: Perception) -> bool:
    """Tell whether a perception asks that an answer be given up: the word, or the sign on one's own message. Pure."""
    if perception.kind is Kind.REACTION:
        is_sign = perception.extra.get("emoji") == SIGN and perception.extra.get("is_on", True)
        return bool(is_sign and perception.extra.get("of"))
    return perception.kind in (Kind.MESSAGE, Kind.MENTION) and perception.text.strip().casefold() == WORD


def is_owner(perception: Perception, config: Config) -> bool:
    """Tell, by the id that the network signed, whether its speaker has the owner's rights. Pure."""
    return perception.is_owner or perception.person in config.owners
