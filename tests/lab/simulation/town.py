"""A network in memory that outlives every process: its people, its history, its moods.

It brings events late, twice, again, or not at all; it applies a post and does not say so; it lets its history be read,
or not now. What it does is drawn from one generator, so that a seed tells a whole life.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.errors import DeliveryLater, DeliveryUnknown
from claudius.intent import Utterance
from claudius.perception import DeleteExtra, EditExtra, Kind, Perception, amended_key, private, shared
from claudius.runtime.adapter import Accept, Gap, PlainAdapter, Swept
from lab.oracle import Posted, Visible, World

NETWORK = "simulated"
WORKSPACE = "t:"
BEFORE_ALL = "-"
"""A position before every other."""
BEGAN = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
AGAIN_S = (0.0, 60.0, 300.0)
"""An event that is not acknowledged is brought again after so long, so often."""
APPEARS_S = 5.0
"""A post whose answer was lost may become visible so late."""


def place_of(person: str, thread: str) -> str:
    """Return where a person talks: in a thread, or, where none is named, in a DM. Pure."""
    return f"{NETWORK}:t:{'c1' if thread else f'dm-{person}'}:{thread}"


def instant(now_s: float) -> datetime:
    """Return the wall clock's reading. Pure."""
    return BEGAN + timedelta(seconds=now_s)


class Moods(Struct, frozen=True):
    """How often, in a hundred, the network does each of these."""

    loses: int = 6
    doubles: int = 12
    is_slow: int = 15
    says_later: int = 6
    hides_success: int = 8
    hides_failure: int = 8
    hides_history: int = 10


class Town(Struct):
    """What the network knows, whoever listens. `ears` is the process that listens now, if any."""

    chance: Random
    moods: Moods = field(default_factory=Moods)
    said: list[Perception] = field(default_factory=list)
    posts: list[Visible] = field(default_factory=list)
    due: list[tuple[float, Visible]] = field(default_factory=list)
    """Posts that were applied, and are not to be seen yet."""
    ears: TownAdapter | None = None
    gone: set[str] = field(default_factory=set)
    """Keys of what was taken down."""
    changes: int = 0
    """Messages that were changed, and people who came, so far."""
    in_force: dict[str, Perception] = field(default_factory=dict)
    """The newest change of each message, by its key, that a process has acknowledged as put in force."""
    second_thoughts: list[Perception] = field(default_factory=list)
    """Every change, in order."""
    memory: Path = Path()
    """Where the soul keeps its portraits, which hands edit."""
    by_hand: list[str] = field(default_factory=list)
    """What hands wrote into portraits."""
    receipts: dict[str, Visible] = field(default_factory=dict)
    """What each post that stands is called, oldest first."""
    shown: int = 0
    """How many posts ever became visible."""
    last_words: list[tuple[str, str]] = field(default_factory=list)
    """Who says something, and where, as soon as the next reply is to be seen there: person and thread."""

    def one_in_hundred(self, times: int) -> bool:
        """Say yes so often in a hundred."""
        return self.chance.randrange(100) < times

    def say(self, position: str, person: str, thread: str, text: str, now_s: float) -> None:
        """Have a person say something: in a DM, or, where a thread is named, in it. A person who listens may hear of it."""
        place = place_of(person, thread)
        who = f"{NETWORK}:t:{person}"
        perception = Perception(
            key=f"{place.rpartition(':')[0]}:{position}",
            conversation=place,
            audience=shared(place) if thread else private(who),
            person=who,
            name=f"{person.capitalize()} {len(self.said) // 8}",  # a new display name now and then: the files move
            text=text,
            at=instant(now_s),
            position=position,
            kind=Kind.MENTION if thread else Kind.MESSAGE,
        )
        self.said.append(perception)
        if self.ears:
            self.ears.bring(perception)

    def change(self, number: int, text: str, now_s: float) -> None:
        """Have a person put the n-th word right, or take it down where `text` is empty."""
        at = next((at for at, one in enumerate(self.said) if one.position == f"{number:06d}"), None)
        if at is None or self.said[at].key in self.gone:
            return
        before = self.said[at]
        self.changes += 1
        self.said[at] = replace(before, text=text)
        if not text:
            self.gone.add(before.key)
        change = replace(
            before,
            key=f"{NETWORK}:change:{self.changes:06d}",
            position=f"{self.said[-1].position}.{self.changes:06d}",
            kind=Kind.EDIT if text else Kind.DELETE,
            person=before.person if text else "",
            text=text,
            at=instant(now_s),
            owes=False,
            extra=EditExtra(of=before.key) if text else DeleteExtra(of=before.key),
        )
        self.second_thoughts.append(change)
        if self.ears:
            self.ears.bring(change)

    def edit(self, number: int, at: float, now_s: float) -> None:
        """Have a hand write into a portrait, if there is one: the file that stands at this part of the list."""
        if portraits := sorted(self.memory.glob("users/*/*.md")):
            file = portraits[int(at * len(portraits))]
            text = f"{file.read_text('utf-8')}- A hand wrote {number}.\n"
            file.write_text(text, "utf-8")
            os.utime(file, (instant(now_s).timestamp(),) * 2)
            self.by_hand.append(text)

    def join(self, person: str, now_s: float) -> None:
        """Have a person come into the channel."""
        self.changes += 1
        place = f"{NETWORK}:t:c1:"
        who = f"{NETWORK}:t:{person}"
        joined = Perception(
            key=f"{NETWORK}:join:{self.changes:06d}",
            conversation=place,
            audience=shared(place),
            person=who,
            name=person.capitalize(),
            at=instant(now_s),
            position=f"join.{self.changes:06d}",
            kind=Kind.JOIN,
            owes=False,
        )
        if self.ears:
            self.ears.bring(joined)

    def settle(self, change: Perception) -> None:
        """Remember the newest change of each message that the soul has acknowledged."""
        of = amended_key(change)
        known = self.in_force.get(of)
        if known is None or (known.text and (not change.text or known.position < change.position)):
            self.in_force[of] = change

    def may_hold(self, key: str) -> set[str]:
        """Return what memory may hold of a message: the newest change in force, or one whose process died with it."""
        newest = self.in_force[key]
        if not newest.text:
            return {""}
        later = [one for one in self.second_thoughts if amended_key(one) == key and one.position >= newest.position]
        return {one.text for one in later}

    def show(self, now_s: float) -> None:
        """Let what is due by now be seen."""
        for at_s, post in sorted(self.due, key=lambda one: one[0]):
            if at_s <= now_s:
                self.appear(post, now_s)
        self.due = [one for one in self.due if one[0] > now_s]

    def appear(self, post: Visible, now_s: float) -> str:
        """Let a post be seen; return its receipt. A person who waited for it has the last word."""
        self.shown += 1
        receipt = f"seen:{self.shown}"
        self.posts.append(post)
        self.receipts[receipt] = post
        for one in [one for one in self.last_words if place_of(*one) == post.conversation]:
            self.last_words.remove(one)
            between = f"{self.said[-1].position}a"  # after this one and its changes, before the next number
            self.say(between, *one, f"after {len(self.posts)}", now_s)
        return receipt

    def receipt_of(self, key: str) -> str | None:
        """Return the receipt of the first post with this key that stands."""
        return next((receipt for receipt, post in self.receipts.items() if post.key == key), None)

    def world(self, head: Mapping[str, str]) -> World:
        """Tell what was said, seen and written by hand, for the oracle; `head` is what the history shows."""
        posted = [
            Posted(
                key=one.key, conversation=one.conversation, position=one.position, may_be_unheard=one.key in self.gone
            )
            for one in self.said
        ]
        return World(posted=posted, visible=self.posts, by_hand=self.by_hand, head=head)


class TownAdapter(PlainAdapter):
    """One process's door to the town, which needs nothing in order to speak."""

    name, appears_s, logs_in = NETWORK, APPEARS_S, True

    def __init__(self, town: Town, now: Callable[[], float]) -> None:
        super().__init__()
        self.town, self.now = town, now
        self._accept: Accept | None = None
        self._loop: Any = None
        self._bringing: set[asyncio.Task[None]] = set()

    async def listen(self, accept: Accept) -> None:
        """Hear until closed; sometimes the connection breaks, and what is said meanwhile is not brought."""
        self._accept, self._loop = accept, asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.town.chance.uniform(0.05, 1.0))
            self.town.ears = self
            self.link.up()
            await asyncio.sleep(self.town.chance.uniform(5.0, 4000.0))
            self.town.ears = None
            self.link.down("the connection broke")
            await asyncio.sleep(self.town.chance.uniform(0.1, 90.0))

    def bring(self, perception: Perception) -> None:
        """Bring an event: soon, late, twice, or not at all."""
        moods, yes = self.town.moods, self.town.one_in_hundred
        if yes(moods.loses):
            return
        for _ in range(2 if yes(moods.doubles) else 1):
            after_s = self.town.chance.uniform(0.5, 8.0) if yes(moods.is_slow) else self.town.chance.uniform(0, 0.2)
            task = self._loop.create_task(self._bring(perception, after_s))
            self._bringing.add(task)
            task.add_done_callback(self._bringing.discard)

    async def _bring(self, perception: Perception, after_s: float) -> None:
        for wait_s in (after_s, *AGAIN_S):
            await asyncio.sleep(wait_s)
            if self.town.ears is not self or self._accept is None:
                continue
            try:
                is_new = await self._accept(perception)
            except Exception:  # noqa: BLE001, S112 - not acknowledged, whatever the reason: it is brought again
                continue
            if is_new and perception.kind in (Kind.EDIT, Kind.DELETE):
                self.town.settle(perception)
            return

    async def speak(self, utterance: Utterance) -> str:
        """Post one part, or not, and say so, or not."""
        town, now_s = self.town, self.now()
        town.show(now_s)
        post = Visible(conversation=utterance.conversation, text=utterance.body, key=utterance.key)
        if town.one_in_hundred(town.moods.says_later):
            raise DeliveryLater(town.chance.uniform(0.5, 40.0))
        if town.one_in_hundred(town.moods.hides_success):
            town.due.append((now_s + town.chance.uniform(0.0, APPEARS_S * 0.9), post))
            await asyncio.sleep(town.chance.uniform(0.0, 3.0))
            raise DeliveryUnknown("no answer")
        if town.one_in_hundred(town.moods.hides_failure):
            await asyncio.sleep(town.chance.uniform(0.0, 3.0))
            raise DeliveryUnknown("no answer")
        await asyncio.sleep(town.chance.uniform(0.0, 0.1))
        receipt = town.appear(post, now_s)
        await asyncio.sleep(town.chance.uniform(0.0, 0.4))
        return receipt

    async def take_back(self, conversation: str, receipt: str) -> None:  # noqa: ARG002 - the protocol's
        """Take a post down."""
        gone = self.town.receipts.pop(receipt, None)
        self.town.posts = [one for one in self.town.posts if one is not gone]

    async def find(self, utterance: Utterance, *, decided_at: datetime) -> str | None:  # noqa: ARG002 - the door's
        """Look for a part, where the history can be read now."""
        town = self.town
        await asyncio.sleep(town.chance.uniform(0.0, 0.3))
        if town.one_in_hundred(town.moods.hides_history):
            raise DeliveryUnknown("no history")
        town.show(self.now())
        return town.receipt_of(utterance.key)

    async def catch_up(self, gap: Gap) -> AsyncIterator[Swept]:
        """Read every channel from its mark to its end, or break off."""
        everything = self.town.said[-1].position if self.town.said else BEFORE_ALL
        for channel in dict.fromkeys(one.conversation.rsplit(":", 1)[0] for one in reversed(self.town.said)):
            await asyncio.sleep(self.town.chance.uniform(0.0, 0.5))
            if self.town.one_in_hundred(self.town.moods.hides_history):
                raise DeliveryUnknown("no history")
            name = channel.removeprefix(f"{NETWORK}:")
            mark = gap.marks.get(name, gap.marks.get(WORKSPACE, ""))
            here = [
                one
                for one in self.town.said
                if one.conversation.rsplit(":", 1)[0] == channel and one.key not in self.town.gone
            ]
            unread = tuple(replace(one) for one in here if one.position > mark and one.at >= gap.since)
            yield Swept(channel=name, perceptions=unread, position=here[-1].position if here else mark or BEFORE_ALL)
        yield Swept(channel=WORKSPACE, perceptions=(), position=everything)

    async def close(self) -> None:
        """Hear nothing more."""
        self._accept = None
        if self.town.ears is self:
            self.town.ears = None
        for task in self._bringing:
            task.cancel()
