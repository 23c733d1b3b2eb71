"""Speaking whole: replies that nobody watches grow, because a post that grows has more ways to fail."""

from __future__ import annotations

from claudius.intent import Utterance
from claudius.perception import Perception


class Whole:
    """An adapter, as far as it shows nothing before it is whole."""

    def streams(self, perception: Perception) -> bool:  # noqa: ARG002 - the door's signature
        """Tell that replies come whole."""
        return False

    async def show(self, utterance: Utterance, text: str) -> None:
        """Nothing is shown before it is whole."""
