"""Record how far this process has read each channel. The liveness probe compares it with the channel's history."""

from __future__ import annotations

from msgspec import Struct, field

MOST = 1000
"""How many messages of a channel are known individually. Everything older counts as known."""


class Reached(Struct):
    """Positions by channel, compared as text."""

    newest: dict[str, str] = field(default_factory=dict)
    """The newest message of each channel that arrived or was read, by anybody. The latest channel is last."""
    lost: dict[str, str] = field(default_factory=dict)
    """The first message of a channel that arrived and could not be stored. The next sweep begins before it."""
    _read_to: dict[str, str] = field(default_factory=dict)
    """Up to here, nothing of a channel is missing."""
    _came: dict[str, dict[str, None]] = field(default_factory=dict)
    """What arrived after that, individually: its arrival proves nothing about earlier messages."""

    def known(self, channel: str, ts: str) -> None:
        """Note that a message is known."""
        newest = max(ts, self.newest.pop(channel, ""))
        self.newest[channel] = newest
        if ts <= self._read_to.setdefault(channel, ts):
            return
        came = self._came.setdefault(channel, {})
        came[ts] = None
        if len(came) > MOST:
            self.read(channel, sorted(came)[MOST // 2])

    def read(self, channel: str, to: str) -> None:
        """Note that a channel was read up to a position, so that everything before it is known."""
        self._read_to[channel] = max(to, self._read_to.get(channel, ""))
        if later := [ts for ts in self._came.pop(channel, ()) if ts > to]:
            self._came[channel] = dict.fromkeys(later)
        self.known(channel, to)

    def has(self, channel: str, ts: str) -> bool:
        """Return whether a message is known."""
        return ts <= self._read_to.get(channel, "") or ts in self._came.get(channel, ())

    def failed(self, channel: str, ts: str) -> None:
        """Note that a message arrived and could not be stored."""
        self.lost[channel] = min(ts, self.lost.get(channel, ts))
