"""How far each channel came to this process: what the deaf probe compares with the history."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Reached:
    """Positions by channel; they are compared as text."""

    newest: dict[str, str] = field(default_factory=dict)
    """The newest message of each channel that came or was read, whoever said it; latest channel last."""
    lost: dict[str, str] = field(default_factory=dict)
    """The first message of a channel that came and could not be kept: the next sweep begins before it."""

    def known(self, channel: str, ts: str) -> None:
        """Note that a message is known to be there."""
        newest = max(ts, self.newest.pop(channel, ""))
        self.newest[channel] = newest

    def failed(self, channel: str, ts: str) -> None:
        """Note that a message came and could not be kept."""
        self.lost[channel] = min(ts, self.lost.get(channel, ts))
