"""How far each channel was heard by this process: what a sweep must read again, and what the deaf probe compares.

A mark in the store is raised by every live message, also by one that came after a gap, before the sweep. So it
tells where to begin only as long as nothing was heard live past it since the channel was last swept.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Reached:
    """Positions by channel; they are compared as text."""

    newest: dict[str, str] = field(default_factory=dict)
    """The newest message of each channel that came, whoever said it; latest channel last."""
    _first: dict[str, str] = field(default_factory=dict)
    """The first message that came live since the channel was last swept."""
    _swept: dict[str, str] = field(default_factory=dict)

    def live(self, channel: str, ts: str) -> None:
        """Note a message that came by itself, before it is accepted."""
        self._first.setdefault(channel, ts)
        self.known(channel, ts)

    def known(self, channel: str, ts: str) -> None:
        """Note that a message is known to be there: one of our own."""
        newest = max(ts, self.newest.pop(channel, ""))
        self.newest[channel] = newest

    def floor(self, channel: str, mark: str, since: str) -> str:
        """Return after which position a sweep reads a channel; never before `since`."""
        first = self._first.get(channel)
        is_true = bool(mark) and (first is None or mark < first)
        return max(since, mark if is_true else self._swept.get(channel, ""))

    def swept(self, channel: str, position: str) -> None:
        """Note that a channel was read up to a position, its threads too."""
        self._swept[channel] = position
        if self.newest.get(channel, "") <= position:
            self._first.pop(channel, None)
