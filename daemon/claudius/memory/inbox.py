"""The topic `store.inbox`: what was heard and is not answered yet, and what becomes of it.

Every accepted perception waits here until a turn commits it; edits, deletions, reactions and stop requests change it.
"""

from __future__ import annotations

import base64
import hashlib
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum, auto
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.intent import Call
from claudius.perception import Kind, MessageExtra, Perception

T = TypeVar("T")
InboxState = Literal["pending", "taken", "thought", "committed", "settled", "dead"]


EVERY_NETWORK = "*"
"""In place of a network: the mark of its channel `` is an instant, before which no history is read."""


def turn_of(key: str) -> str:
    """Return the id of the turn that answers the perception with this dedupe key; re-runs keep it. Pure."""
    return base64.b32encode(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest())[:16].decode().lower()


class Pending(Struct, frozen=True, kw_only=True):
    """An accepted perception that no turn has committed yet."""

    seq: int
    perception: Perception
    turn: str
    """The id of its turn, the same in every run: base32(sha256(key))[:16], lower case."""
    state: InboxState
    attempts: int
    boots: int
    """How many different processes have taken it, this one included."""
    not_before: datetime | None
    heard_at: datetime
    inputs: Mapping[str, str] = field(default_factory=dict)
    """`now` and `nonce` of an earlier, unfinished run; a re-run uses them again."""
    calls: tuple[Call, ...] = ()
    """Finished model calls of an earlier, unfinished run; a re-run does not pay for them again."""
    held: int = 0
    """How often its turn yielded to a newer perception; it is then answered with that one."""
    is_taken_here: bool = False
    """Whether this process has taken it."""
    is_stopped: bool = False
    """Its speaker wants no answer any more: an apology is owed, and no model is asked."""
    further: tuple[Pending, ...] = ()
    """Further perceptions that the same turn answers, oldest first."""

    @property
    def ended(self) -> int:
        """How many processes took it and ended before its turn did."""
        return self.boots - self.is_taken_here

    @property
    def perceptions(self) -> tuple[Perception, ...]:
        """Everything that the turn answers, oldest first."""
        return (self.perception, *[one.perception for one in self.further])


class Unsaid(Struct, frozen=True, kw_only=True):
    """A message whose words have changed."""

    turn: str
    """The turn that heard it."""
    conversation: str
    number: int
    record: int
    at: str
    person: str
    moment: int
    """Where it is found again; 0 = nowhere."""
    before: str
    now: str
    """Empty if it was deleted."""


class Undone(Struct, frozen=True):
    """What follows for what runs."""

    voided: tuple[tuple[str, str], ...] = ()
    """Turns that are to be thought again, each with its conversation."""
    is_new: bool = False
    """Whether something may have been erased."""
    is_left: bool = False
    """Whether it is to be done again, because turns run that may have begun with words that are gone."""


class Amended(Struct, frozen=True, kw_only=True):
    """What an amendment changed."""

    conversation: str = ""
    """The conversation that it changed; empty if it changed nothing."""
    interrupts: str = ""
    """The turn to interrupt, because the message that it answers has changed; empty if none."""
    is_unsaid: bool = False
    """Whether the message was answered: what was written with its old words in sight goes with them, by `undo`."""
    is_early: bool = False
    """Whether its message is not known yet: it is applied when that message is accepted."""

    @property
    def is_new(self) -> bool:
        """Whether it changed something."""
        return bool(self.conversation)


class RateLimits(Struct, frozen=True, kw_only=True):
    """How many messages are heard at most; None = they are not counted."""

    person_per_minute: int | None = None
    person_per_day: int | None = None
    conversation_per_hour: int | None = None
    bot_turns: int | None = None
    """Of one bot in one conversation within `BOT_S`; more are dropped."""


UNLIMITED = RateLimits()


class RateVerdict(Enum):
    """Whether a message is accepted."""

    WITHIN = auto()
    OVER_NOW = auto()
    """The first message over the limit: it gets the one apology."""
    SHUT = auto()
    """Not accepted until the hour is over."""
    DROPPED = auto()
    """A bot's message beyond its turns."""


CONSUMED = "consume"
"""The participation of a message that gets no answer, however its conversation is heard."""


def unanswered(perception: Perception) -> Perception:
    """Return a message as it is kept where nothing is answered. Pure."""
    extra = perception.extra
    if isinstance(extra, MessageExtra):
        extra = replace(extra, participation=CONSUMED)
    return replace(perception, owes=False, following=None, extra=extra)


def is_unanswered(perception: Perception) -> bool:
    """Return whether a message is kept to be left without an answer. Pure."""
    return isinstance(perception.extra, MessageExtra) and perception.extra.participation == CONSUMED


class InboxStore(Protocol):
    """What was heard: made durable here before it is acknowledged, and taken from here, oldest first.

    An edit or a deletion of an unknown message changes nothing until that message is accepted.
    """

    async def accept(
        self, perceptions: Sequence[Perception], now: datetime, limits: RateLimits = UNLIMITED
    ) -> tuple[bool, ...]:
        """Make perceptions durable in one transaction; True for each new one, False if its key is known.

        Decides, permanently, what a message in a thread is owed (`settled_in`); one that is not to be kept is False.
        The mark of each channel rises with what is kept. An edit or a deletion that came before its message is applied
        in the same transaction. Each message counts once against the `limits`; the first one over them is accepted
        with `is_over_budget`; a bot's beyond its turns is False.

        Raises: OverBudget for what comes within an hour after that one; StoreFull, StoreError. Nothing is acknowledged
        before this returns.
        """
        ...

    async def marks(self, network: str) -> Mapping[str, str]:
        """Return up to where each channel (`workspace:channel`) of a network was heard without a gap, latest first.

        `workspace:` alone means a whole workspace, if its adapter reports that. Of `EVERY_NETWORK`, the mark of the
        channel `` is an RFC 3339 instant: older messages were answered before a copy was restored, or nobody knows.
        """
        ...

    async def swept(self, network: str, channel: str, position: str, now: datetime) -> None:
        """Record that a channel's history was read up to `position`."""
        ...

    async def oldest(self, conversation: str) -> Pending | None:
        """Return the unfinished perception with the lowest position, including its finished calls.

        Raises: RowInvalid if its row does not decode; it blocks the others until it is given up.
        """
        ...

    async def unfinished(self, conversation: str, most: int = 32) -> Sequence[Pending]:
        """Return what no turn has committed yet, oldest first, without its calls."""
        ...

    async def join(self, pendings: Sequence[Pending]) -> Pending:
        """Merge perceptions of one conversation into one turn, that of the last, and return it."""
        ...

    async def hold(self, pending: Pending) -> None:
        """Leave what a turn was to answer to the next turn, because it yielded to a newer perception."""
        ...

    async def meet(self, pending: Pending) -> None:
        """Count this process among those that took a perception; durable before anything is done with it."""
        ...

    def take(self, seq: int, inputs: Mapping[str, str], now: datetime) -> None:
        """Count one attempt of this boot at a perception and keep the run's inputs. Not awaited."""
        ...

    async def postpone(self, seq: int, not_before: datetime, reason: str, attempts: int = 0) -> None:
        """Put a perception back to pending until `not_before`; it was tried at least `attempts` times."""
        ...

    def failing(self, turn: str, reason: str) -> None:
        """Keep why a turn fails that is not finished, for `status` and `why`. Not awaited."""
        ...

    async def withdraw(self, seq: int, reason: str) -> None:
        """Settle a perception that nobody needs an answer to any more (state settled, with the reason)."""
        ...

    async def give_up(self, seq: int, reason: str) -> None:
        """Mark a perception as dead, because neither a reply nor an apology can be made.

        Its row stays, with the reason.
        """
        ...

    async def impose(self, perception: Perception, name: str, kept: Mapping[str, Any], now: datetime) -> bool:
        """Queue a perception of the soul's own after everything that waits in its conversation.

        Returns False if it was heard before. `kept` is stored in the same transaction as what `name` keeps of that
        conversation.
        """
        ...

    async def put_right(self, perception: Perception) -> None:
        """Change what waiting messages show of a message that was edited or deleted. Raises: StoreError."""
        ...

    async def amend(self, perception: Perception, now: datetime) -> Amended:
        """Apply an edit, a deletion or a reaction durably, in one transaction.

        EDIT (of `extra.of`): a pending message gets the new text and keeps its position. A message whose turn is
        running is taken again, once; a second edit waits for the end of that turn. If the message was already answered,
        working memory is corrected and marked. DELETE: a pending message is withdrawn; if it was already answered, its
        words are removed from memory. What was learned from the old words is marked. Either of an unknown message waits
        for it a while. REACTION: a reaction to something the soul said is kept; it is removed again if `extra.is_on` is
        false. What was written with old words in sight is left to `undo`, which an interruption does not prevent.

        Raises: StoreError.
        """
        ...

    @property
    def is_unsaid(self) -> bool:
        """Whether `unsaid` would return at once."""
        ...

    async def unsaid(self) -> None:
        """Return once an answered message was edited or deleted here and `undo` was not called since."""
        ...

    async def undo(self) -> Undone:
        """Erase what was written with the old words of edited and deleted messages in sight, and holds them.

        Does nothing if there are none. Raises: StoreError; then it is to be called again.
        """
        ...

    async def stop(self, perception: Perception, now: datetime, *, by_owner: bool) -> Amended:
        """Suppress the answer to a message sent before `perception`: the one in `extra.of`, or the oldest.

        Only its own speaker or an owner may do so. The message is then owed the apology `stopped`, and no model is
        asked.
        """
        ...


MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
BOT_S = 600.0
"""The window in which a bot's messages in one conversation are counted, to stop endless bot-to-bot exchanges."""
MOST_KNOWN = 10_000
"""How many persons and conversations are counted at most; the least recently active are forgotten first."""
MOST_JUDGED = 1000
"""How many verdicts are remembered; duplicates of a message arrive soon after it."""


class _Count(Struct):
    times: array[float] = field(default_factory=lambda: array("d"))
    """Oldest first; an array of floats, because many persons may have spoken only once."""
    shut_until: float = 0.0

    def within(self, seconds: float, now: float) -> int:
        return len(self.times) - bisect_right(self.times, now - seconds)

    def forget(self, before: float) -> None:
        del self.times[: bisect_right(self.times, before)]


def exceeds(count: int, most: int | None) -> bool:
    """Return whether a count is over its limit, if it has one. Pure."""
    return most is not None and count > most


class Rates:
    """Message counts of the one process of a soul, kept in memory only: a restart resets them."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self._counts: dict[str, _Count] = {}
        self._verdicts: dict[str, Any] = {}

    def verdict(self, heard: Perception, limits: RateLimits) -> RateVerdict:
        """Count a message and judge it; a message that comes again has the verdict that it had."""
        return self.once(heard.key, partial(self._verdict, heard, limits, time.monotonic()))

    def _verdict(self, heard: Perception, limits: RateLimits, now: float) -> RateVerdict:
        if heard.is_bot and not self.judge_bot(heard.person, heard.conversation, limits.bot_turns, now):
            return RateVerdict.DROPPED
        if limits.person_per_minute is None:
            return RateVerdict.WITHIN
        return self.judge(heard.person, heard.conversation, limits, now)

    def once(self, key: str, judge: Callable[[], T]) -> T:
        """Judge the first arrival of a message and return the same verdict for its duplicates."""
        if key not in self._verdicts:
            self._verdicts[key] = judge()
            if len(self._verdicts) > MOST_JUDGED:
                del self._verdicts[next(iter(self._verdicts))]
        verdict: T = self._verdicts[key]
        return verdict

    def judge(self, person: str, conversation: str, limits: RateLimits, now: float) -> RateVerdict:
        """Count one message and judge it. `now`: monotonic seconds."""
        counts = [self._count(key) for key in (f"person {person}", f"conversation {conversation}")]
        if any(now < count.shut_until for count in counts):
            return RateVerdict.SHUT
        for count in counts:
            count.times.append(now)
            count.forget(now - DAY_S)
        by_person, by_conversation = counts
        in_minute, in_day = by_person.within(MINUTE_S, now), len(by_person.times)
        if exceeds(in_minute, limits.person_per_minute) or exceeds(in_day, limits.person_per_day):
            by_person.shut_until = now + HOUR_S
            return RateVerdict.OVER_NOW
        if exceeds(by_conversation.within(HOUR_S, now), limits.conversation_per_hour):
            by_conversation.shut_until = now + HOUR_S
            return RateVerdict.OVER_NOW
        return RateVerdict.WITHIN

    def judge_bot(self, person: str, conversation: str, turns: int | None, now: float) -> bool:
        """Count one message of a bot. Returns whether it is still heard there. `now`: monotonic seconds."""
        count = self._count(f"bot {person} {conversation}")
        count.forget(now - BOT_S)
        if exceeds(len(count.times) + 1, turns):
            return False
        count.times.append(now)
        return True

    def _count(self, key: str) -> _Count:
        count = self._counts.pop(key, None) or _Count()
        self._counts[key] = count
        if len(self._counts) > MOST_KNOWN:
            del self._counts[next(iter(self._counts))]
        return count


def in_force(known: Perception | None, change: Perception) -> Perception:
    """Return which of two changes of one message holds: a deletion is final; of two edits, the later one. Pure."""
    if known and (known.kind is Kind.DELETE or (change.kind is Kind.EDIT and change.position < known.position)):
        return known
    return change
