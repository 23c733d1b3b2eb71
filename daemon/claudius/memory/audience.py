"""Determine the audience of a conversation: the label under which everything said there is learned. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from claudius.perception import Place, private

TERMINAL = "terminal"


def joint(conversation: str) -> str:
    """Return the audience of a terminal conversation that several persons have spoken in. Pure.

    Each conversation is an audience of its own, because a speaker in one has not seen the others.
    """
    return f"shared:{conversation}"


def is_terminal(conversation: str) -> bool:
    """Return whether a conversation takes place at the terminal. Pure."""
    return Place.of(conversation).network == TERMINAL


def hearing_audience(conversation: str, carried: str, speakers: Iterable[str]) -> str:
    """Return the audience of a perception: the one it carries, unless several persons share that terminal. Pure.

    `speakers` are all who have spoken in this conversation, the present speaker included, by canonical id. What was
    learned there while only one person spoke keeps its private label, so `perception.may_show` hides it now.
    """
    if is_terminal(conversation) and carried.startswith("private:") and len(set(speakers)) > 1:
        return joint(conversation)
    return carried


def sees_everything(audience: str, *, is_owner: bool) -> bool:
    """Return whether the owner sits alone at his own terminal, where everything may be shown. Pure."""
    return is_owner and audience.startswith(private(""))
