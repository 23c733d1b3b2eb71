"""How often a route may be called, and when the next call is due.

Source: docs.discord.com/developers/topics/rate-limits. The figures of single routes are nowhere promised; these are
what people meet.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lab.loopback.discord.settings import Settings


@dataclass(frozen=True, slots=True)
class Limit:
    """So many calls within so many seconds of the first; of each channel, guild or webhook by itself."""

    calls: int
    within_s: float


USUAL = Limit(5, 1.0)
KNOWN = {"create_message": Limit(5, 5.0), "create_reaction": Limit(1, 0.25)}


@dataclass(slots=True)
class Bucket:
    """The calls of one window."""

    limit: Limit
    ends_at: float
    used: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a call is told: the headers, and how long to stay away (0 = it may pass)."""

    headers: Mapping[str, str]
    wait_s: float = 0.0
    is_global: bool = False


@dataclass(slots=True)
class Limits:
    """Counts calls."""

    settings: Settings
    now: Callable[[], float]
    set_instead: dict[str, Limit] = field(default_factory=lambda: dict(KNOWN))
    _buckets: dict[tuple[str, str], Bucket] = field(default_factory=dict)
    _all: Bucket = field(default_factory=lambda: Bucket(USUAL, 0.0))

    def count(self, route: str, top: str, *, is_interaction: bool) -> Verdict:
        """Count a call of a route on a top-level resource."""
        if not self.settings.has_rate_limits:
            return Verdict({})
        now = self.now()
        if not is_interaction and (wait_s := self._global(now)):
            headers = {"X-RateLimit-Global": "true", "X-RateLimit-Scope": "global", "Retry-After": str(int(wait_s) + 1)}
            return Verdict(headers, wait_s, is_global=True)
        limit = self.set_instead.get(route, USUAL)
        bucket = self._buckets.get((route, top))
        if bucket is None or bucket.ends_at <= now or bucket.limit != limit:
            bucket = self._buckets[route, top] = Bucket(limit, now + limit.within_s)
        is_over = bucket.used >= limit.calls
        bucket.used += not is_over
        left_s = bucket.ends_at - now
        headers = {
            "X-RateLimit-Limit": str(limit.calls),
            "X-RateLimit-Remaining": str(limit.calls - bucket.used),
            "X-RateLimit-Reset": f"{bucket.ends_at:.3f}",
            "X-RateLimit-Reset-After": f"{left_s:.3f}",
            "X-RateLimit-Bucket": hashlib.sha256(route.encode()).hexdigest()[:32],
        }
        if not is_over:
            return Verdict(headers)
        return Verdict(headers | {"X-RateLimit-Scope": "user", "Retry-After": str(int(left_s) + 1)}, left_s)

    def _global(self, now: float) -> float:
        if self._all.ends_at <= now:
            self._all = Bucket(Limit(self.settings.global_calls_per_s, 1.0), now + 1.0)
        if self._all.used >= self._all.limit.calls:
            return self._all.ends_at - now
        self._all.used += 1
        return 0.0
