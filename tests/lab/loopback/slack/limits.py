"""How often a method may be called, and when the next call is due."""

import math
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from lab.loopback.slack.rules import METHODS, Arguments


@dataclass(frozen=True, slots=True)
class Limit:
    """So many calls within so many seconds; of each channel, or of all."""

    calls: int
    within_s: float
    is_by_channel: bool = False


POSTING = Limit(1, 1.0, is_by_channel=True)
"""Source: docs.slack.dev/apis/web-api/rate-limits: 1 message a second and channel (bursts are not promised)."""


@dataclass(slots=True)
class Limits:
    """Counts calls; knows the tiers, and what was set instead."""

    now: Callable[[], float]
    set_instead: dict[str, Limit] = field(default_factory=lambda: {"chat.postMessage": POSTING})
    _past: defaultdict[tuple[str, str], deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def refuse_for_s(self, method: str, arguments: Arguments) -> int:
        """Count a call; give the whole seconds after which to come again, 0 = it may pass."""
        rule = METHODS.get(method)
        limit = self.set_instead.get(method) or Limit(rule.per_minute if rule else 100, 60.0)
        past = self._past[method, arguments.text("channel") if limit.is_by_channel else ""]
        now = self.now()
        while past and past[0] <= now - limit.within_s:
            past.popleft()
        if len(past) < limit.calls:
            past.append(now)
            return 0
        return max(1, math.ceil(past[0] + limit.within_s - now))
