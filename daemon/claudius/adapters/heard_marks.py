"""How far each channel came to this process: what the deaf probe compares with the history."""

from __future__ import annotations

from msgspec import Struct, field

MOST = 1000
"""So many messages of a channel are known one by one; below them, all is taken for known."""


class Reached(Struct):
    """Positions by channel; they are compared as text."""

    newest: dict[str, str] = field(default_factory=dict)
    """The newest message of each channel that came or was read, whoever said it; latest channel last."""
    lost: dict[str, str] = field(default_factory=dict)
    """The first message of a channel that came and could not be kept: the next sweep begins before it."""
    _read_to: dict[str, str] = field(default_factory=dict)
    """Up to here nothing of a channel is missing."""
    _came: dict[str, dict[str, None]] = field(default_factory=dict)
    """What came after that, each by itself: that it came proves nothing of what was said before it."""

    def known(self, channel: str, ts: str) -> None:
        """Note that a message is known to be there."""
        newest = max(ts, self.newest.pop(channel, ""))
        self.newest[channel] = newest
        if ts <= self._read_to.setdefault(channel, ts):
            return
        came = self._came.setdefault(channel, {})
        came[ts] = None
        if len(came) > MOST:
            self.read(channel, sorted(came)[MOST // 2])

    def read(self, channel: str, to: str) -> None:
        """Note that a channel was read to a position, and that all before it is known."""
        self._read_to[channel] = max(to, self._read_to.get(channel, ""))
        if later := [ts for ts in self._came.pop(channel, ()) if ts > to]:
            self._came[channel] = dict.fromkeys(later)
        self.known(channel, to)

    def has(self, channel: str, ts: str) -> bool:
        """Tell whether a message is known."""
        return ts <= self._read_to.get(channel, "") or ts in self._came.get(channel, ())

    def failed(self, channel: str, ts: str) -> None:
        """Note that a message came and could not be kept."""
        self.lost[channel] = min(ts, self.lost.get(channel, ts))
