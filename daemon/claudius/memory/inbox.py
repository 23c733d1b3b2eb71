"""The topic `store.inbox`: what was heard and is not answered yet, and what becomes of it.

Every accepted perception waits here until a turn commits it; edits, deletions, reactions and stop requests change it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.config.schema import Config
from claudius.decoding import decoder
from claudius.errors import OverBudget, RowInvalid
from claudius.intent import Call, Utterance
from claudius.memory.database import Core, Database, Decoding, Row, call_of, dump_valid, instant, parse_object, stamp
from claudius.memory.erasing import Unsaid, note_unsaid, shown_change
from claudius.memory.erasure import Undone, Unsaying
from claudius.memory.moments import amend_moment
from claudius.memory.outbox import say_held
from claudius.memory.seen import post, words_brought
from claudius.perception import (
    CONSUMED,
    CommandExtra,
    Following,
    Kind,
    MessageExtra,
    Origin,
    Perception,
    Place,
    ReactionExtra,
    amended_key,
    brought,
    is_terminal,
    whole_text,
)
from claudius.prompt import valid
from claudius.recollection import turn_of
from claudius.shown import put_right


class Pending(Struct, frozen=True, kw_only=True):
    """An accepted perception that no turn has committed yet."""

    seq: int
    perception: Perception
    turn: str
    """The id of its turn, the same in every run: base32(sha256(key))[:16], lower case."""
    state: Literal["pending", "taken", "thought", "committed", "settled", "dead"] = "pending"
    attempts: int = 0
    boots: int = 0
    """How many different processes have taken it, this one included."""
    not_before: datetime | None = None
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

    @classmethod
    def of(cls, config: Config) -> RateLimits:
        """Take the limits from the settings."""
        budget = config.budget
        return cls(
            person_per_minute=budget.person_per_minute,
            person_per_day=budget.person_per_day,
            conversation_per_hour=budget.conversation_per_hour,
            bot_turns=config.bots.turns,
        )


UNLIMITED = RateLimits()
NO_SIGNS: Mapping[str, Utterance] = MappingProxyType({})


class RateVerdict(Enum):
    """Whether a message is accepted."""

    WITHIN = auto()
    OVER_NOW = auto()
    """The first message over the limit: it gets the one apology."""
    SHUT = auto()
    """Not accepted until the hour is over."""
    DROPPED = auto()
    """A bot's message beyond its turns."""


def unanswered(perception: Perception) -> Perception:
    """Return a message as it is kept where nothing is answered. Pure."""
    extra = perception.extra
    if isinstance(extra, MessageExtra):
        extra = replace(extra, participation=CONSUMED)
    return replace(perception, owes=False, following=None, extra=extra)


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


def over(limits: RateLimits, in_minute: int, in_day: int, in_hour: int) -> Literal["person", "conversation", ""]:
    """Return whose rate a message is over, which is counted in these; empty = nobody's. Pure."""
    if exceeds(in_minute, limits.person_per_minute) or exceeds(in_day, limits.person_per_day):
        return "person"
    return "conversation" if exceeds(in_hour, limits.conversation_per_hour) else ""


class Rates:
    """Message counts of the one process of a soul, kept in memory only: a restart resets them."""

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}
        self._verdicts: dict[str, RateVerdict] = {}

    def verdict(self, heard: Perception, limits: RateLimits) -> RateVerdict:
        """Count a message and judge it; a message that comes again has the verdict that it had."""
        if heard.key not in self._verdicts:
            self._verdicts[heard.key] = self._verdict(heard, limits, time.monotonic())
            if len(self._verdicts) > MOST_JUDGED:
                del self._verdicts[next(iter(self._verdicts))]
        return self._verdicts[heard.key]

    def _verdict(self, heard: Perception, limits: RateLimits, now: float) -> RateVerdict:
        if heard.is_bot and not self.judge_bot(heard.person, heard.conversation, limits.bot_turns, now):
            return RateVerdict.DROPPED
        if limits.person_per_minute is None:
            return RateVerdict.WITHIN
        return self.judge(heard.person, heard.conversation, limits, now)

    def judge(self, person: str, conversation: str, limits: RateLimits, now: float) -> RateVerdict:
        """Count one message and judge it. `now`: monotonic seconds."""
        counts = [self._count(key) for key in (f"person {person}", f"conversation {conversation}")]
        if any(now < count.shut_until for count in counts):
            return RateVerdict.SHUT
        for count in counts:
            count.times.append(now)
            count.forget(now - DAY_S)
        by_person, by_conversation = counts
        in_minute, in_hour = by_person.within(MINUTE_S, now), by_conversation.within(HOUR_S, now)
        whose = over(limits, in_minute, len(by_person.times), in_hour)
        if not whose:
            return RateVerdict.WITHIN
        (by_person if whose == "person" else by_conversation).shut_until = now + HOUR_S
        return RateVerdict.OVER_NOW

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


perception_of = decoder(Perception).decode
"""Decodes a perception that `dump_valid` wrote."""


def pending_of(row: Row) -> Pending:
    """Decode a row of the query `oldest`, without its calls. Pure. Raises: RowInvalid."""
    with Decoding("inbox", row["seq"]):
        perception = perception_of(row["payload"])
        if perception.owes != bool(row["owes"]):
            perception = replace(perception, owes=bool(row["owes"]))
        return Pending(
            seq=row["seq"],
            perception=perception,
            turn=row["turn"],
            state=row["state"],
            attempts=row["attempts"],
            boots=row["boots"],
            not_before=instant(row["not_before"]) if row["not_before"] else None,
            heard_at=instant(row["heard_at"]),
            inputs=parse_object(row["inputs"]),
            held=row["held"],
            is_stopped=bool(row["stopped"]),
            is_taken_here=bool(row["here"]),
        )


log = logging.getLogger(__name__)
EARLY = 256
"""How many changes of unknown messages are remembered, because an event may overtake the message that it refers to."""

NEVER_CALLED = "~"
"""In place of the position that called us into a thread: after every position."""


class InboxStore:
    """What was heard: made durable here before it is acknowledged, and taken from here, oldest first.

    An edit or a deletion of an unknown message changes nothing until that message is accepted.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._rates = Rates()
        self._early: dict[str, Perception] = {}
        """The latest changes of unknown messages, by the key of the message; oldest first."""
        self._unsaying, self._unsaid = Unsaying(core), asyncio.Event()

    async def accept(
        self,
        perceptions: Sequence[Perception],
        now: datetime,
        limits: RateLimits = UNLIMITED,
        signs: Mapping[str, Utterance] = NO_SIGNS,
    ) -> tuple[bool, ...]:
        """Make perceptions durable in one transaction; True for each new one, False if its key is known.

        What is owed an answer gets the sign that `signs` has for its key. Decides, permanently, what a message in a
        thread is owed (`settled_in`); one that is not to be kept is False. The mark of each channel rises with what is
        kept. An edit or a deletion that came before its message is applied in the same transaction. Each message counts
        once against the `limits`; the first over them is accepted with `is_over_budget`; a bot's beyond them is False.

        Raises: OverBudget for what comes within an hour after that one; StoreFull, StoreError. Nothing is acknowledged
        before this returns.
        """
        heard = list(perceptions) if limits is UNLIMITED else [judged(self._rates, one, limits) for one in perceptions]
        found = await self._core.write(partial(accept, perceptions=heard, now=now, early=self._early, signs=signs))
        if self._early:
            for one in perceptions:
                self._early.pop(one.key, None)
        return found

    async def marks(self, network: str) -> Mapping[str, str]:
        """Return up to where each channel (`workspace:channel`) of a network was heard without a gap, latest first.

        `workspace:` alone means a whole workspace, if its adapter reports that. Of `EVERY_NETWORK`, the mark of the
        channel `` is an RFC 3339 instant: older messages were answered before a copy was restored, or nobody knows.
        """
        await self._core.writer.flush()
        with self._core.snapshot() as db:
            marks = db.all("marks", adapter=network)
        found = sorted(marks, key=lambda mark: str(mark["position"]), reverse=True)
        return {mark["channel"]: mark["position"] for mark in found}

    async def swept(self, network: str, channel: str, position: str, now: datetime) -> None:
        """Record that a channel's history was read up to `position`."""
        values = {"adapter": network, "channel": channel, "position": position, "now": stamp(now)}
        await self._core.write(lambda db: db.change("mark_swept", **values))

    async def oldest(self, conversation: str) -> Pending | None:
        """Return the unfinished perception with the lowest position, including its finished calls.

        Raises: RowInvalid if its row does not decode; it blocks the others until it is given up.
        """
        found = self._core.look("oldest", conversation=conversation, boot=self._core.boot)
        if not found:
            return None
        pending = pending_of(found[0])
        if await self._core.writer.flush(pending.seq, pending.turn):
            return await self.oldest(conversation)
        calls = tuple(map(call_of, self._core.look("calls", turn=pending.turn))) if pending.attempts else ()
        return replace(pending, calls=calls) if calls else pending

    async def unfinished(self, conversation: str, most: int = 32) -> Sequence[Pending]:
        """Return what no turn has committed yet, oldest first, without its calls."""
        await self._core.writer.flush()
        found = self._core.look("unfinished", conversation=conversation, boot=self._core.boot, most=most)
        return list(_readable(found))

    async def join(self, pendings: Sequence[Pending]) -> Pending:
        """Merge perceptions of one conversation into one turn, that of the last, and return it."""
        first, turn = pendings[0], pendings[-1].turn

        def write(db: Database) -> None:
            for one in pendings:
                db.run("join_turn", seq=one.seq, turn=turn)

        await self._core.write(write)
        with self._core.snapshot() as db:
            calls = tuple(call_of(call) for call in db.all("calls", turn=turn))
        return replace(first, turn=turn, calls=calls, further=tuple(pendings[1:]))

    async def hold(self, pending: Pending) -> None:
        """Leave what a turn was to answer to the next turn, because it yielded to a newer perception."""

        def write(db: Database) -> None:
            for one in pending.perceptions:
                hold(db, one.key)

        await self._core.write(write)

    async def meet(self, pending: Pending) -> None:
        """Count this process among those that took a perception; durable before anything is done with it."""
        boot, met = self._core.boot, (pending, *pending.further)
        await self._core.write(lambda db: [db.run("met", seq=one.seq, boot=boot) for one in met])

    def take(self, seq: int, inputs: Mapping[str, str], now: datetime) -> None:
        """Count one attempt of this boot at a perception and keep the run's inputs. Not awaited."""
        boot = self._core.boot
        self._core.writer.later(
            lambda db: db.run("take", seq=seq, inputs=dump_valid(dict(inputs)), now=stamp(now), boot=boot), seq
        )

    async def postpone(self, seq: int, not_before: datetime, reason: str, attempts: int = 0) -> None:
        """Put a perception back to pending until `not_before`; it was tried at least `attempts` times."""
        values = {"seq": seq, "not_before": stamp(not_before), "reason": reason, "attempts": attempts}
        await self._core.write(lambda db: db.change("postpone", **values))

    async def try_now(self, conversation: str) -> None:
        """Have what was postponed in a conversation tried at once."""
        if self._core.look("postponed", conversation=conversation):
            await self._core.write(lambda db: db.run("try_now", conversation=conversation))

    def failing(self, turn: str, reason: str) -> None:
        """Keep why a turn fails that is not finished, for `status` and `why`. Not awaited."""
        self._core.writer.later(lambda db: db.run("failing", turn=turn, reason=valid(reason)), turn)

    async def withdraw(self, seq: int, reason: str) -> None:
        """Settle a perception that nobody needs an answer to any more (state settled, with the reason)."""
        await self._core.write(lambda db: db.change("withdraw", seq=seq, reason=reason))

    async def give_up(self, seq: int, reason: str) -> None:
        """Mark a perception as dead, because neither a reply nor an apology can be made.

        Its row stays, with the reason.
        """
        await self._core.write(lambda db: db.change("give_up", seq=seq, reason=reason))

    async def impose(self, perception: Perception, name: str, kept: Mapping[str, Any], now: datetime) -> bool:
        """Queue a perception of the soul's own after everything that waits in its conversation.

        Returns False if it was heard before. `kept` is stored in the same transaction as what `name` keeps of that
        conversation.
        """
        conversation = perception.conversation

        def write(db: Database) -> bool:
            if name:
                db.run("keep_kept", conversation=conversation, name=name, value=dump_valid(dict(kept)))
            return keep(db, replace(perception, position=position(db, conversation, 0)), stamp(now))

        return await self._core.write(write)

    def state(self, key: str) -> str:
        """Return how far a perception has come (`Pending.state`); empty if it is not known."""
        found = self._core.look("heard_before", key=key)
        return str(found[0]["state"]) if found else ""

    def audience(self, conversation: str) -> str:
        """Return who hears a conversation; a channel is known by its threads, too. Empty = it is not known."""
        until = f"{conversation[:-1]};" if conversation.endswith(":") else f"{conversation}!"
        found = self._core.look("audience_heard", conversation=conversation, until=until)
        return str(found[0]["audience"]) if found else ""

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
        amended = await self._amend(lambda db: amend(db, perception, stamp(now)))
        if amended.is_early:
            of = amended_key(perception)
            self._early[of] = in_force(self._early.pop(of, None), perception)
            if len(self._early) > EARLY:
                del self._early[next(iter(self._early))]
        return amended

    async def _amend(self, write: Callable[[Database], Amended]) -> Amended:
        amended = await self._core.write(write)
        if amended.is_unsaid:
            self._unsaid.set()
        return amended

    @property
    def is_unsaid(self) -> bool:
        """Whether `unsaid` would return at once."""
        return self._unsaid.is_set()

    def follow_unsaid(self) -> None:
        """Have `unsaid` return: words are gone from which something was written."""
        self._unsaid.set()

    async def unsaid(self) -> None:
        """Return once an answered message was edited or deleted here and `undo` was not called since."""
        await self._unsaid.wait()

    async def undo(self) -> Undone:
        """Erase what was written with the old words of edited and deleted messages in sight, and holds them.

        Does nothing if there are none. Raises: StoreError; then it is to be called again.
        """
        self._unsaid.clear()
        return await self._unsaying.undo()

    async def put_right(self, perception: Perception) -> None:
        """Change what waiting messages show of one that was edited or deleted; what turns were shown is for `undo`."""
        of = amended_key(perception)
        await self._core.writer.flush()
        if of and self._core.look("showing", of=f'%"{of}"%'):
            await self._core.write(lambda db: put_shown_right(db, of, perception))
        if not of or self.state(of) not in ("", *UNFINISHED):
            return  # if it was answered, `amend` has noted it
        change, channel = shown_change(perception), Place.of(perception.conversation).of_channel
        where = {"at": change.at, "channel": channel, "is_everywhere": not change.now}
        if self._core.look("turns_since", **where) or self._core.look("turns_under_way"):
            await self._core.write(lambda db: note_unsaid(db, change))
            self.follow_unsaid()

    async def stop(self, perception: Perception, now: datetime, *, by_owner: bool) -> Amended:
        """Suppress the answer to a message sent before `perception`: the one in `extra.of`, or the oldest.

        Only its own speaker or an owner may do so. The message is then owed the apology `stopped`, and no model is
        asked.
        """
        return await self._core.write(lambda db: stop(db, perception, stamp(now), by_owner=by_owner))


def _readable(rows: Iterable[Row]) -> Iterator[Pending]:
    """Yield the rows that decode. A damaged row is given up by its lane once it is the oldest."""
    for row in rows:
        with suppress(RowInvalid):
            yield pending_of(row)


def judged(rates: Rates, heard: Perception, limits: RateLimits) -> Perception | None:
    """Return a perception as the rates let it in; None if it is dropped. Raises: OverBudget."""
    verdict = rates.verdict(heard, limits)
    if verdict is RateVerdict.SHUT:
        raise OverBudget(SHUT_FOR_NOW)
    if verdict is RateVerdict.OVER_NOW:
        return over_budget(heard)
    return None if verdict is RateVerdict.DROPPED else heard


SHUT_FOR_NOW = "too many messages: this is not heard before the hour is over"


def over_budget(heard: Perception) -> Perception:
    """Return a perception as the one that gets the apology. Pure."""
    return replace(heard, extra=replace(heard.extra, is_over_budget=True))


def accept(
    db: Database,
    perceptions: Sequence[Perception | None],
    now: datetime,
    early: Mapping[str, Perception] | None = None,
    signs: Mapping[str, Utterance] = NO_SIGNS,
) -> tuple[bool, ...]:
    """WRITE 1: store what was heard, and apply what changed it `early`; True for each new perception."""
    at, found = stamp(now), []
    for perception in perceptions:
        is_new = perception is not None and accept_one(db, perception, at)
        if is_new and perception and early and (change := early.get(perception.key)):
            amend(db, change, at)
        if is_new and perception and signs:
            say_held(db, signs.get(perception.key), at)
        found.append(is_new)
    return tuple(found)


def accept_one(db: Database, heard: Perception, at: str) -> bool:
    """Store one perception; False if its key is known, or it is not to be kept."""
    perception = _in_thread(db, heard)
    if perception is None:
        return False
    extra = perception.extra if isinstance(perception.extra, MessageExtra) else MessageExtra()
    said = perception.origin is Origin.EXTERNAL and not perception.is_bot and extra.participation != CONSUMED
    new = keep(db, perception, at, said=said)
    if new and isinstance(perception.extra, CommandExtra) and perception.extra.hushes:
        db.run("hush", never=NEVER_CALLED, conversation=perception.extra.hushes, at=at)
    if new and perception.person and perception.origin is Origin.EXTERNAL:
        who = {"person": perception.person, "name": valid(perception.name), "is_bot": perception.is_bot}
        db.run("person_heard", **who, zone=valid(extra.zone), locale=valid(perception.extra.locale), now=at)
        if not is_terminal(perception.conversation):
            mark(db, perception)
    return bool(new)


def mark(db: Database, perception: Perception) -> None:
    """Record from where its channel is to be swept, if that channel was never heard before."""
    place = Place.of(perception.conversation)
    workspace, channel = f"{place.workspace}:", f"{place.workspace}:{place.channel}"
    db.run("mark_heard", adapter=place.network, workspace=workspace, channel=channel, position=perception.position)


FOLLOWED_FOR = timedelta(hours=72)
"""After this much silence the soul no longer follows a thread."""
FOLLOWED_PEOPLE = 2
"""With more humans than this in a thread, each message needs a mention again."""


class Thread(Struct, frozen=True, kw_only=True):
    """A thread that the soul was called into."""

    since: str
    """The position of the message that called it."""
    last_at: datetime
    """When anyone last spoke in it."""
    people: int
    """Distinct humans who have spoken in it since, including the current one."""
    is_quiet: bool = False
    """Whether someone asked the soul to be quiet there."""


def settled_in(perception: Perception, thread: Thread | None) -> Perception | None:
    """Decide whether a message in a thread is owed a reply, and return it so; None if it is dropped. Pure.

    Source: the chat design, section 4, "follow without mention".
    """
    if perception.following is None:
        return perception
    if (
        thread is not None
        and not thread.is_quiet
        and perception.position > thread.since
        and perception.at - thread.last_at <= FOLLOWED_FOR
    ):
        return replace(perception, following=None, owes=perception.owes and thread.people <= FOLLOWED_PEOPLE)
    return replace(perception, following=None, owes=False) if perception.following is Following.KEPT else None


def _in_thread(db: Database, perception: Perception) -> Perception | None:
    """Decide what a message in a thread is owed; None if it is not to be kept."""
    conversation = perception.conversation
    is_call = perception.kind is Kind.MENTION and bool(Place.of(conversation).thread)
    if perception.following is None and not is_call:
        return perception
    at = stamp(perception.at)
    if is_call and perception.owes:
        db.run("thread_called", conversation=conversation, position=perception.position, at=at)
    before = db.one("thread", conversation=conversation)
    if before is None:
        return settled_in(perception, None)
    if not perception.is_bot and before["since"] != NEVER_CALLED:
        db.run("thread_speaks", conversation=conversation, person=perception.person, key=perception.key)
    row = db.one("thread", conversation=conversation) or before
    thread = Thread(
        since=row["since"], last_at=instant(row["last_at"]), is_quiet=bool(row["is_quiet"]), people=row["people"]
    )
    db.run("thread_spoken", conversation=conversation, at=at)
    if thread.is_quiet and perception.following is Following.KEPT:
        return unanswered(perception)
    return settled_in(perception, thread)


def position(db: Database, conversation: str, schedule_id: int) -> str:
    """Return a position after everything that waits there now."""
    last = db.value("last_position", conversation=conversation)
    return f"{last}~{schedule_id:020d}" if last is not None else f"{schedule_id:020d}"


NOTHING = Amended()
UNDONE_WITHIN = timedelta(seconds=60)
"""For so long at most what edited words ask for waits until what the old ones left is gone."""
UNFINISHED = ("pending", "taken", "thought")
GONE = "~"
"""As the position of the newest change: the message was deleted, and nothing changes it any more."""


def keep(db: Database, perception: Perception, at: str, *, said: bool = False) -> bool:
    """Write a perception to the inbox for its lane; False if its key is known.

    `said`: a person said it, so it is owed an answer wherever everything said is.
    """
    what = {"key": perception.key, "kind": perception.kind, "payload": dump_valid(perception), "now": at}
    where = {"conversation": perception.conversation, "position": perception.position, "person": perception.person}
    owed = {"owes": perception.owes, "said": said, "turn": turn_of(perception.key)}
    return bool(db.change("accept", **what, **where, **owed))


def hold(db: Database, key: str) -> None:
    """Leave a perception to the next turn, under a turn id that no commit has used."""
    held = db.value("held_how_often", key=key)
    if held is not None:
        db.run("hold", key=key, turn=turn_of(f"{key}+{held + 1}"))


class _Heard(Struct, frozen=True):
    """The message that an amendment is about."""

    seq: int
    key: str
    conversation: str
    position: str
    state: str
    payload: str
    turn: str
    again: int
    edited: str | None
    person: str


def amend(db: Database, perception: Perception, at: str) -> Amended:
    """Apply an edit, a deletion or a reaction."""
    if perception.kind is Kind.REACTION:
        return _react(db, perception, at)
    row = db.one("heard_before", key=amended_key(perception))
    heard = _Heard(**row) if row else None
    is_late = heard is None or (heard.edited or "") >= (GONE if perception.kind is Kind.DELETE else perception.position)
    if heard and not is_late and _waits(heard, perception):
        _keep(db, replace(perception, conversation=heard.conversation), at)
        return Amended(conversation=heard.conversation)
    db.run("amend_settled", key=perception.key, now=at, reason="in force")  # if it waited for a turn to end
    if heard is None:
        return Amended(is_early=True)
    if is_late:
        return NOTHING
    how = _delete if perception.kind is Kind.DELETE else _edit
    return how(db, heard, perception, at) if how is _delete or perception.person == heard.person else NOTHING


def _waits(heard: _Heard, perception: Perception) -> bool:
    """Return whether an edit must wait for its lane, after the running turn, which an earlier edit has restarted."""
    is_thought = heard.state in UNFINISHED and heard.state != "pending"
    return perception.kind is Kind.EDIT and perception.person == heard.person and is_thought and bool(heard.again)


def _edit(db: Database, heard: _Heard, perception: Perception, at: str) -> Amended:
    interrupts, is_unsaid = "", False
    if heard.state not in UNFINISHED:
        db.run("amended", seq=heard.seq, position=perception.position)
        line = db.value("line_at", turn=heard.turn, position=heard.position)
        is_withdrawn = line != valid(perception.text) and db.change("calls_withdrawn", turn=heard.turn, now=at)
        anew = f"{heard.key}@"
        if asked := db.one("heard_before", key=anew):
            again = _edit(db, _Heard(**asked), perception, at)
            interrupts, is_unsaid = again.interrupts, again.is_unsaid
        elif is_withdrawn and not _is_silent(db, heard, perception):  # what it asks for now is thought anew
            where, extra = heard.conversation, MessageExtra(locale=perception.extra.locale)
            asks = replace(perception, key=anew, conversation=where, kind=Kind.MESSAGE, owes=True, extra=extra)
            keep(db, asks, at, said=True)
        for row in db.all("heard_before", key=anew):  # what was written from the old words would take it along
            db.run("postpone", seq=row["seq"], not_before=stamp(instant(at) + UNDONE_WITHIN), reason="", attempts=0)
        is_unsaid |= _remember(db, heard, perception, "$.edited", at)
    else:
        before = _before(heard)
        if before is None or (before.text == perception.text and brought(before) <= brought(perception)):
            return NOTHING  # a link preview arrived and the words are the same; or the row is damaged
        interrupts = heard.turn  # also if it is pending: another process may have taken it just now
        _put_right(db, heard, before, perception, heard.again + (heard.state != "pending"))
        db.run("stream_dropped", turn=heard.turn, reason="its message was changed")
    return Amended(conversation=heard.conversation, interrupts=interrupts, is_unsaid=is_unsaid)


def _is_silent(db: Database, heard: _Heard, perception: Perception) -> bool:
    """Return whether nothing is answered: its author is muted, or its conversation is to be quiet."""
    thread, how = db.one("thread", conversation=heard.conversation), getattr(perception.extra, "participation", "")
    return how == CONSUMED or bool(thread and thread["is_quiet"])


def _before(heard: _Heard) -> Perception | None:
    """Return a message as it was heard; None if its row is damaged."""
    try:
        with Decoding("inbox", heard.seq):
            return perception_of(heard.payload)
    except RowInvalid as error:
        log.error("a change is not applied", extra={"error": error.message})  # noqa: TRY400 - no trace
        return None


def _put_right(db: Database, heard: _Heard, before: Perception, perception: Perception, again: int) -> None:
    """Replace the text of a message that is not answered yet, keeping its position."""
    extra = before.extra
    if isinstance(extra, MessageExtra) and isinstance(perception.extra, MessageExtra):
        extra = replace(extra, named=perception.extra.named, shown=perception.extra.shown)
    now = replace(before, text=perception.text, name=perception.name or before.name, extra=extra)
    turn = turn_of(f"{before.key}@{perception.position}")
    values = {"seq": heard.seq, "payload": dump_valid(now), "position": perception.position}
    db.run("amend_waiting", **values, turn=turn, again=again)


def put_shown_right(db: Database, of: str, perception: Perception) -> None:
    """Change what messages that wait show of a message that was edited, or take it from them if it was deleted.

    An edit changes nothing in another place: whoever is there may not read where it was made.
    """
    place = Place.of(perception.conversation).of_channel
    for row in db.all("showing", of=f'%"{of}"%'):
        try:
            with Decoding("inbox", row["seq"]):
                waiting = perception_of(row["payload"])
        except RowInvalid:
            continue  # its lane gives it up
        extra = waiting.extra
        is_seen = perception.kind is Kind.DELETE or Place.of(waiting.conversation).of_channel == place
        if is_seen and isinstance(extra, MessageExtra) and extra.shown:
            text = None if perception.kind is Kind.DELETE else whole_text(perception)
            files = [one for one in extra.files if text is not None or one.get("of") != of]
            extra = replace(extra, shown=put_right(extra.shown, of, text), files=tuple(files))
            db.run("shows_now", seq=row["seq"], payload=dump_valid(replace(waiting, extra=extra)))


def _keep(db: Database, perception: Perception, at: str) -> None:
    keep(db, replace(perception, owes=False, following=None), at)


def _delete(db: Database, heard: _Heard, perception: Perception, at: str) -> Amended:
    db.run("amended", seq=heard.seq, position=GONE)
    if heard.state in UNFINISHED:
        db.run("withdraw", seq=heard.seq, reason="withdrawn")
        db.run("stream_dropped", turn=heard.turn, reason="its message was taken down")
        return Amended(conversation=heard.conversation, interrupts=heard.turn)
    db.run("calls_withdrawn", turn=heard.turn, now=at)
    asked = db.one("heard_before", key=f"{heard.key}@")
    again = _delete(db, _Heard(**asked), perception, at) if asked else NOTHING
    is_unsaid = _remember(db, heard, perception, "$.deleted", at) or again.is_unsaid
    return Amended(conversation=heard.conversation, interrupts=again.interrupts, is_unsaid=is_unsaid)


def _remember(db: Database, heard: _Heard, perception: Perception, mark: str, at: str) -> bool:
    """Correct working memory, and mark what was learned from the old words; False if no turn has heard them."""
    found = db.one("place_of_turn", turn=heard.turn)
    if found is None:
        return False
    where = {name: found[name] for name in ("conversation", "number")}
    moment = db.one("moment_at", conversation=found["conversation"], turn=heard.turn, position=heard.position)
    line, content = db.value("line_at", turn=heard.turn, position=heard.position), valid(perception.text)
    if line != content:
        db.run("entry_amended", **where, position=heard.position, content=content, mark=mark)
        amend_moment(db, found["conversation"], heard.turn, heard.position, content)
    db.run("turn_edited", turn=heard.turn)
    db.run("doubt_learned", turn=heard.turn, now=at)
    db.run("doubt_summary", **where, now=at)
    at_moment, before = (moment["id"], moment["text"]) if moment else (0, "")
    texts = words_brought(db, found["record"], heard.key, getattr(perception.extra, "files", ()))
    old, shows = "\n".join((line or before, *(texts or ()))), "\n".join(sorted(brought(perception)))
    unsaid = Unsaid(**found, person=heard.person, moment=at_moment, before=old, now=content, shows=shows)
    note_unsaid(db, replace(unsaid, rows=(post(heard.key),), is_unread=texts is None and not content))
    return True


def stop(db: Database, perception: Perception, at: str, *, by_owner: bool) -> Amended:
    """Suppress the answer to one pending or running message.

    A stop request that is processed again stops no other message.
    """
    if db.one("heard_before", key=perception.key):
        return NOTHING
    wanted = amended_key(perception) or _owed_before(db, perception, by_owner=by_owner)
    row = db.one("heard_before", key=wanted) if wanted else None
    heard = _Heard(**row) if row else None
    if heard is None or heard.state not in UNFINISHED or not (by_owner or heard.person == perception.person):
        return _stop_asking(db, perception, heard, at, by_owner=by_owner)
    if not db.change("stop", key=wanted, turn=turn_of(f"{wanted}!")):
        return NOTHING
    db.run("stream_dropped", turn=heard.turn, reason="stopped")
    _keep(db, replace(perception, conversation=heard.conversation, kind=Kind.COMMAND, extra=CommandExtra()), at)
    db.run("amend_settled", key=perception.key, now=at, reason="in force")
    return Amended(conversation=heard.conversation, interrupts=heard.turn)


def _stop_asking(db: Database, perception: Perception, heard: _Heard | None, at: str, *, by_owner: bool) -> Amended:
    """Take back the questions for consent that wait there, or that an answered message caused."""
    if heard is not None:
        is_theirs = by_owner or heard.person == perception.person
        gone = db.change("calls_withdrawn", turn=heard.turn, now=at) if is_theirs else 0
    else:
        where = {"conversation": perception.conversation, "person": perception.person, "by_owner": int(by_owner)}
        gone = len(db.values("calls_stopped", **where, now=at))
    return Amended(conversation=perception.conversation) if gone else NOTHING


def _owed_before(db: Database, perception: Perception, *, by_owner: bool) -> str | None:
    """Return the oldest message that may be meant: in its conversation, else the speaker's own in that channel.

    A mention in a channel begins a conversation of its own, and so does the stop request.
    """
    channel = Place.of(perception.conversation).of_channel
    rows = db.all("owed_before", place=f"{channel}:", until=f"{channel};", position=perception.position)
    found = sorted(rows, key=lambda row: (row["position"], row["key"]))
    here = (row["key"] for row in found if by_owner and row["conversation"] == perception.conversation)
    own = [(row["conversation"], row["key"]) for row in found if row["person"] == perception.person]
    own.sort(key=lambda one: one[0] != perception.conversation)
    return next(here, None) or next((key for _, key in own), None)


def _react(db: Database, perception: Perception, at: str) -> Amended:
    where = Place.of(perception.conversation).of_channel
    extra = perception.extra
    if not isinstance(extra, ReactionExtra) or not extra.receipt:
        return NOTHING
    turn: str | None = db.value("said_there", receipt=extra.receipt, place=f"{where}:", until=f"{where};")
    at_home = db.one("place_of_turn", turn=turn) if turn else None
    if turn is None or at_home is None:
        return NOTHING
    sign = {"turn": turn, "person": perception.person, "emoji": valid(extra.emoji), "is_on": extra.is_on}
    if not db.change("react", **sign, at=at, position=perception.position):
        return NOTHING
    key, where = f"{perception.key}:{perception.position}", at_home["conversation"]
    about = replace(extra, turn=turn, is_removed=not extra.is_on)
    heard_there = replace(perception, key=key, conversation=where, text=extra.emoji, extra=about)
    _keep(db, heard_there, at)  # queued for the conversation that it is about; nothing is owed to it
    return Amended(conversation=where)
