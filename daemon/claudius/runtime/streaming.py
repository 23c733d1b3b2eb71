"""A reply shown while it is thought: its outbox row is durable before its first visible character."""

from __future__ import annotations

from claudius.cognition.mind import Mind
from claudius.cognition.soul_engine import draft_utterance
from claudius.memory.store import Pending
from claudius.perception import Perception
from claudius.runtime.adapter import Adapter, Holds


class Stream:
    """Shows one turn's words, in the one message that delivery completes."""

    def __init__(self, pending: Pending, adapter: Adapter, mind: Mind) -> None:
        """Show the turn of `pending` through `adapter`."""
        self._utterance = draft_utterance(pending.turn, pending.perception)
        self._adapter, self._mind = adapter, mind
        self._is_open = False

    @classmethod
    def of(cls, pending: Pending, adapter: Adapter | None, mind: Mind) -> Stream | None:
        """Make a stream where the adapter is one that streams and a reply is owed; else None."""
        if adapter is None or adapter.name not in mind.config().pipeline.stream or not pending.perception.owes:
            return None
        return cls(pending, adapter, mind) if adapter.streams(pending.perception) else None

    async def __call__(self, text: str) -> None:
        """Show one more piece."""
        if not self._is_open:
            await self._mind.store.open_stream(self._utterance, self._mind.clock())
            self._is_open = True
        await self._adapter.show(self._utterance, text)


async def hold(adapter: Adapter | None, perception: Perception, line: str) -> None:
    """Show a holding line in the sign that the soul thinks, where the adapter can: `hold(perception, line)`."""
    holder: object = adapter
    if isinstance(holder, Holds):
        await holder.hold(perception, line)
