"""Turn streaming off for adapters that post complete replies: a post that grows by edits has more ways to fail."""

from __future__ import annotations

from claudius.intent import Utterance
from claudius.perception import Perception


class Whole:
    """The streaming methods of an adapter that shows nothing before a reply is complete."""

    def streams(self, perception: Perception) -> bool:  # noqa: ARG002 - protocol signature
        """Return False: replies are posted complete."""
        return False

    async def show(self, utterance: Utterance, text: str) -> None:
        """Do nothing: no part of a reply is shown before it is complete."""
