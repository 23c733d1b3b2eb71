"""How often one person, and one conversation, may ask: counted as messages arrive, before any row or model call.

Source: the security design, section 4, "Budgets"; the reliability design, section 7, "budget".
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, TypeVar

from msgspec import Struct, field

from claudius.config import Budget

T = TypeVar("T")

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
BOT_S = 600.0
"""A bot's messages in one conversation are counted over so long: two bots may not talk each other to death."""
MOST_KNOWN = 10_000
"""So many persons and conversations are counted at most; the quietest are forgotten first."""
MOST_JUDGED = 1000
"""So many messages are known to have been judged: what comes twice comes soon."""


class Verdict(Enum):
    """Whether a message may come in."""

    WITHIN = auto()
    OVER_NOW = auto()
    """The first one too many: it gets the one apology."""
    SHUT = auto()
    """Not accepted until the hour is over."""


class _Count(Struct):
    times: array[float] = field(default_factory=lambda: array("d"))
    """Oldest first; bare numbers, for there may be many who spoke once."""
    shut_until: float = 0.0

    def within(self, seconds: float, now: float) -> int:
        return len(self.times) - bisect_right(self.times, now - seconds)

    def forget(self, before: float) -> None:
        del self.times[: bisect_right(self.times, before)]


class Rates:
    """Counts in memory; a restart forgives."""

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}
        self._verdicts: dict[str, Any] = {}

    def once(self, key: str, judge: Callable[[], T]) -> T:
        """Judge what comes for the first time, and give the same verdict when it comes again: it is one message."""
        if key not in self._verdicts:
            self._verdicts[key] = judge()
            if len(self._verdicts) > MOST_JUDGED:
                del self._verdicts[next(iter(self._verdicts))]
        verdict: T = self._verdicts[key]
        return verdict

    def judge(self, person: str, conversation: str, budget: Budget, now: float) -> Verdict:
        """Count one message and judge it. `now`: monotonic seconds."""
        counts = [self._count(key) for key in (f"person {person}", f"conversation {conversation}")]
        if any(now < count.shut_until for count in counts):
            return Verdict.SHUT
        for count in counts:
            count.times.append(now)
            count.forget(now - DAY_S)
        by_person, by_conversation = counts
        if by_person.within(MINUTE_S, now) > budget.person_per_minute or len(by_person.times) > budget.person_per_day:
            by_person.shut_until = now + HOUR_S
            return Verdict.OVER_NOW
        if by_conversation.within(HOUR_S, now) > budget.conversation_per_hour:
            by_conversation.shut_until = now + HOUR_S
            return Verdict.OVER_NOW
        return Verdict.WITHIN

    def judge_bot(self, person: str, conversation: str, turns: int, now: float) -> bool:
        """Count one message of a bot; tell whether it may still be heard there. `now`: monotonic seconds."""
        count = self._count(f"bot {person} {conversation}")
        count.forget(now - BOT_S)
        if len(count.times) >= turns:
            return False
        count.times.append(now)
        return True

    def _count(self, key: str) -> _Count:
        count = self._counts.pop(key, None) or _Count()
        self._counts[key] = count
        if len(self._counts) > MOST_KNOWN:
            del self._counts[next(iter(self._counts))]
        return count
