"""Our side in its own process: accept → take_turn → deliver on a filled store, as shipped, with an oracle.

The provider answers at once and the adapter settles in the same process. Everything between is the daemon's own code:
`synchronous=FULL`, the provider chain, gates, the audience rule, the output gate, the settings and soul read by stat.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import script
from claudius.cognition.mind import Mind, lately
from claudius.cognition.reflection import reflect
from claudius.cognition.steps import STEPS
from claudius.cognition.turn import take_turn
from claudius.compose import TOOLS, Settings
from claudius.home import Home, shipped
from claudius.intent import Utterance
from claudius.memory.archive import Archive
from claudius.memory.sqlite import SqliteRecords, SqliteStore
from claudius.perception import Perception, private
from claudius.provider import Delta, Done, Event, Provider, Request, estimate
from claudius.providers.chain import Chain
from claudius.runtime.adapter import Accept, Link, PlainNetwork
from claudius.runtime.delivery import Post, deliver
from claudius.runtime.hands import IdleHands
from claudius.runtime.lanes import RECONCILE_HOURS
from claudius.soul import SoulSource
from claudius.tools.offered import built_in
from sides import cpu_s, serve

PERSON = "terminal:local:tom"
CONVERSATION = "terminal:local:main:bench"
SUMMARY = "They talk about a door, its hinges and the weather; nothing is decided yet."

Reply = Callable[[int], str]


@dataclass(slots=True)
class AtOnce:
    """A model that answers at once with the n-th reply of the script; a summary is one line."""

    reply: Reply = script.plain_reply
    name: str = "at_once"
    model: str = "at-once"
    asked: int = 0
    """Turns answered so far."""
    calls: int = 0

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Return the whole reply as one delta."""
        self.calls += 1
        text = SUMMARY
        if request.purpose != "summary":
            self.asked += 1
            text = self.reply(self.asked)
        yield Delta(text)
        yield Done(text=text, usage=estimate(request, text), provider=self.name, model=self.model)

    async def aclose(self) -> None:
        """Hold nothing, so do nothing."""


@dataclass(slots=True)
class AtHand(PlainNetwork):
    """A fast in-memory network that records what was said to whom."""

    name: str = "terminal"
    post_chars: int | None = None
    appears_s: float = 0.0
    link: Link = field(default_factory=lambda: Link(connected=True))
    said: list[Utterance] = field(default_factory=list)
    accept: Accept | None = None
    """Where a whole daemon listens: how the bench has it hear."""

    async def listen(self, accept: Accept) -> None:
        """Hear nobody: the bench accepts messages itself."""
        self.accept = accept

    async def speak(self, utterance: Utterance) -> str:
        """Take one part."""
        self.said.append(utterance)
        return f"said:{utterance.key}"

    async def find(self, utterance: Utterance, *, decided_at: datetime) -> str | None:  # noqa: ARG002 - the protocol's
        """Return the receipt of a part that was said."""
        return next((f"said:{one.key}" for one in self.said if one.key == utterance.key), None)


class Soul:
    """One soul on one home, taking turns one by one."""

    def __init__(
        self,
        root: Path,
        voice: Provider | None = None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        archives: bool = False,
    ) -> None:
        """Use `root` as the home; `voice` is the model, by default the script's replies in order."""
        self.home = Home(root)
        self.home.create()
        self.voice, self.network = voice or AtOnce(), AtHand()
        self.store = SqliteStore(self.home.database)
        self.archive = Archive(self.store, self.home.memory, self.home.backups, clock=clock) if archives else None
        self._archiving: asyncio.Task[None] | None = None
        settings = Settings(self.home, {})
        soul = SoulSource(self.home.soul, shipped("soul"), steps=STEPS)
        self.mind = Mind(
            store=self.store,
            provider=Chain([self.voice], settings.loaded.config.model),
            soul=lately(soul.current),
            config=lately(settings.current),
            clock=clock,
            nonce=lambda: secrets.token_hex(16),
            hands=IdleHands(built_in(TOOLS.values(), self.store, lately(settings.current))),
        )
        self._number = 0

    async def open(self) -> None:
        """Start the store."""
        await self.store.start(secrets.token_hex(8), self.mind.clock())
        if self.archive:
            self._archiving = asyncio.create_task(self.archive.run(), name="archive")

    async def close(self) -> None:
        """Close everything."""
        if self.archive and self._archiving:
            self._archiving.cancel()
            await asyncio.gather(self._archiving, return_exceptions=True)
            await self.archive.close()
        await self.store.close(clean=True)

    async def drain(self) -> None:
        """Wait until git holds everything, if the archive is on."""
        while self.archive and self.store.documents.unarchived(1):
            assert self.archive.problem is None, self.archive.problem
            await asyncio.sleep(0.02)

    async def turn(self, conversation: str = CONVERSATION, person: str = PERSON, **changes: Any) -> float:
        """Take one turn. Returns its milliseconds, from the message to the settled reply.

        `changes`: fields of the perception that differ from the script's.
        """
        self._number += 1
        heard = self._perception(conversation, person)
        heard = replace(heard, **changes) if changes else heard
        started = time.perf_counter()
        await self.store.inbox.accept((heard,), self.mind.clock())
        pending = await self.store.inbox.oldest(conversation)
        assert pending is not None
        turned = await take_turn(pending, self.mind)
        if self.archive and turned.intent.model:
            self.archive.wake()
        post = Post(self.store, self.network, self.mind.clock, RECONCILE_HOURS)
        wait_s = await deliver(self.store.outbox.deliveries(conversation), post)
        took_ms = 1000 * (time.perf_counter() - started)
        assert wait_s is None
        await reflect(turned, self.mind)
        self._check(heard)
        return took_ms

    def _perception(self, conversation: str, person: str) -> Perception:
        now = self.mind.clock()
        return Perception(
            key=f"terminal:{secrets.token_hex(8)}",
            conversation=conversation,
            audience=private(person),
            person=person,
            name=person.rpartition(":")[2],
            text=script.message(self._number),
            at=now,
            position=f"{int(now.timestamp() * 1e6):020d}.{self._number:09d}",
        )

    def _check(self, heard: Perception) -> None:
        """Check the oracle: one visible reply to this message in its place, as scripted if the model was asked."""
        (said,) = self.network.said
        self.network.said.clear()
        assert said.answers == (heard.key,), said
        assert said.conversation == heard.conversation, said
        assert said.kind == "reply", said
        if said.verb == "acknowledged":  # too trivial for a thought: the model was not asked
            self._number -= 1
            return
        assert said.body == script.spoken(self._number), said


def learning(number: int, every: int) -> str:
    """Return the n-th reply of a model that learns something every so often (`every` turns). Pure."""
    if number % every:
        return script.plain_reply(number)
    facts = "\n".join(f"- {script.prose(60, fact)}" for fact in range(max(0, number - 8 * every), number + 1, every))
    return script.reply(number % script.DIFFERENT, update=facts, note=f"what they said in turn {number}")


class Rounds:
    """Answers `begin`, `turns` and `end` of the bench."""

    def __init__(self) -> None:
        """Create one event loop for all requests."""
        self._loop = asyncio.new_event_loop()
        self._soul: Soul | None = None

    def begin(self, root: str, learns_every: int = 0, *, archives: bool = False) -> None:
        """Open the soul at `root`. `learns_every`: every n-th turn updates the user model; 0 means none.

        `archives`: an archive worker runs beside the turns, as in the daemon.
        """
        script.ready()
        voice = AtOnce(lambda number: learning(number, learns_every)) if learns_every else AtOnce()
        self._soul = Soul(Path(root), voice, archives=archives)
        self._loop.run_until_complete(self._soul.open())

    def turns(self, count: int, chats_from: int = 0) -> dict[str, Any]:
        """Take turns. Returns the milliseconds of each, turns a second, and the CPU share of each.

        `chats_from`: from which number on what is said is in words by Zipf; 0 = the script's.
        """
        assert self._soul is not None
        texts = [script.chatted(chats_from + number) for number in range(count)] if chats_from else []
        found = self._loop.run_until_complete(_timed(self._soul, count, texts))
        self._loop.run_until_complete(self._soul.drain())
        return found

    def end(self) -> None:
        """Close the soul. The oracle: every message was answered, and nothing was given up."""
        assert self._soul is not None
        self._loop.run_until_complete(self._soul.close())
        self._loop.close()
        records = SqliteRecords(self._soul.home.database)
        left = records.counts(datetime.now(UTC))
        records.close()
        assert left["inbox"] == {"pending": 0, "dead": 0}, left
        assert left["outbox"] == {"pending": 0, "failed": 0}, left


async def _timed(soul: Soul, count: int, texts: Sequence[str]) -> dict[str, Any]:
    said: list[dict[str, Any]] = [{"text": text} for text in texts] or [{}] * count
    cpu, began = cpu_s(), time.perf_counter()
    times = [await soul.turn(**changes) for changes in said]
    wall_s = time.perf_counter() - began
    return {"ms": times, "per_s": count / wall_s, "cpu_ms": 1000 * (cpu_s() - cpu) / count}


if __name__ == "__main__":
    asked = Rounds()
    serve({"begin": asked.begin, "turns": asked.turns, "end": asked.end})
