"""Account for every turn: one line of the log when it has been posted, and the counts that the metrics show.

A line holds ids, times, the rung of the reply and its cost, and nobody's words.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from msgspec import Struct, field

from claudius.cognition.hooks import Hooks
from claudius.intent import Intent
from claudius.memory.inbox import Pending
from claudius.observed import Sent
from claudius.perception import Place

log = logging.getLogger(__name__)

UNPOSTED = 1000
"""The most committed turns that are remembered until they are posted; the oldest is logged without."""
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""The upper bounds of the histogram's buckets, in seconds."""


class Durations(Struct):
    """A histogram of seconds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    """How many fell into each bucket; the last one has no upper bound."""
    total_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.total_s += seconds


class _Committed(Struct):
    intent: Intent
    heard_at: datetime
    committed_at: datetime
    attempts: int
    unsent: int
    """How many of its parts are not posted yet."""


class TurnLog:
    """The turns of one process."""

    def __init__(self, hooks: Hooks, clock: Callable[[], datetime]) -> None:
        """Account for turns whose posts `hooks` report; `clock` never goes back."""
        self._clock = clock
        self._open: dict[str, _Committed] = {}
        self._apologised: deque[datetime] = deque()
        self._withheld: dict[str, tuple[datetime, str]] = {}
        self.apologies: Counter[str] = Counter()
        """Apologies by kind."""
        self.durations: dict[str, Durations] = {"total": Durations(), "model": Durations(), "own": Durations()}
        """Of answered turns: from hearing to the last post; of that, the models' share, and the rest."""
        hooks.listen(Sent, self._sent)

    def committed(self, intent: Intent, pending: Pending) -> None:
        """Take a committed turn; its line is written once its last part is posted, or at once if it says nothing."""
        for kind in {one.apology for one in intent.utterances if one.apology}:
            self.apologies[kind] += 1
            self._apologised.append(self._clock())
        for rule in {"G4", "G5"}.intersection(intent.flags):
            log.warning("a reply was withheld", extra={"turn": intent.turn, "rule": rule})
            self._withheld[rule] = (self._clock(), intent.turn)
        turn = _Committed(intent, pending.heard_at, self._clock(), pending.attempts + 1, len(intent.utterances))
        if not turn.unsent:
            _write(turn, None)
            return
        self._open[intent.turn] = turn
        if len(self._open) > UNPOSTED:
            _write(self._open.pop(next(iter(self._open))), None)

    def apologies_lately(self) -> int:
        """Return how many apologies there were in the last hour."""
        while self._apologised and self._clock() - self._apologised[0] > HOUR:
            self._apologised.popleft()
        return len(self._apologised)

    def withheld_lately(self) -> Mapping[str, str]:
        """Return by rule of the output gate the newest turn of the last day whose reply it withheld."""
        return {rule: turn for rule, (at, turn) in self._withheld.items() if self._clock() - at < DAY}

    def close(self) -> None:
        """Write the lines of turns that are not posted yet; the next process posts them."""
        for turn in self._open.values():
            _write(turn, None)
        self._open.clear()

    def _sent(self, sent: Sent) -> None:
        turn = self._open.get(sent.turn)
        if turn is None:  # another process committed it
            return
        turn.unsent -= 1
        if turn.unsent > 0:
            return
        del self._open[sent.turn]
        now = self._clock()
        total_s, model_s = _write(turn, now)
        for name, seconds in (("total", total_s), ("model", model_s), ("own", total_s - model_s)):
            self.durations[name].add(seconds)


def _write(turn: _Committed, posted_at: datetime | None) -> tuple[float, float]:
    """Write a turn's line. Returns how long it took from hearing to its end, and how long a model was waited for."""
    intent = turn.intent
    total_s = max(0.0, ((posted_at or turn.committed_at) - turn.heard_at).total_seconds())
    model_s = min(total_s, sum([call.ms for call in intent.calls]) / 1000)
    costs = [call.usage.cost_usd for call in intent.calls if call.usage.cost_usd is not None]
    last = intent.calls[-1] if intent.calls else None
    said = intent.utterances[-1] if intent.utterances else None
    log.info(
        "turn",
        extra={
            "turn": intent.turn,
            "conversation": intent.conversation,
            "network": Place.of(intent.conversation).network,
            "person": intent.person,
            "mode": intent.process,
            "outcome": said.kind if said else "silent",
            "apology": said.apology if said else None,
            "rung": intent.rung,
            "posted": posted_at is not None,
            "total_ms": round(total_s * 1000),
            "model_ms": round(model_s * 1000),
            "own_ms": round((total_s - model_s) * 1000),
            "attempts": turn.attempts,
            "calls": len(intent.calls),
            "provider": last.provider if last else None,
            "model": last.model if last else None,
            "input_tokens": sum([call.usage.input_tokens for call in intent.calls]),
            "cache_read_tokens": sum([call.usage.cache_read_tokens for call in intent.calls]),
            "cache_write_tokens": sum([call.usage.cache_write_tokens for call in intent.calls]),
            "output_tokens": sum([call.usage.output_tokens for call in intent.calls]),
            "cost_usd": round(sum(costs), 6) if costs else None,
        },
    )
    return total_s, model_s
