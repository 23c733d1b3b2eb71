"""The topic `store.moments`: what was said, found again by its words, and what people plainly said of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from claudius.memory.ranking import Found
from claudius.perception import Perception
from claudius.recollection import Entry


class MomentStore(Protocol):
    """Moments, facts and lines of conversation, as far as they may be shown where they are asked for."""

    async def remember(
        self,
        perception: Perception,
        asked: Mapping[str, float],
        persons: Sequence[str],
        audiences: Sequence[str] | None = None,
    ) -> Found:
        """Return the moments that share a term with what was heard, and the facts in force about these persons.

        `asked`: each term with its weight. Only what may be shown where the perception was heard is returned;
        `audiences`: the turn's own recollection of these, which is not asked again.
        """
        ...

    async def search(self, perception: Perception, words: str, limit: int) -> Sequence[Entry]:
        """Return recent entries that contain most of these words and may be shown here, best first."""
        ...


def cut(text: str, start: int, end: int) -> str:
    """Return the part of a moment's text that a prompt shows, with an ellipsis where something is left out. Pure."""
    return ("… " if start else "") + text[start:end].strip() + (" …" if end < len(text) else "")
