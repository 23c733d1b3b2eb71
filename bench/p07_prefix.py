"""P7: how often the next request begins with the previous one's system and history, byte for byte.

The script is a random mix of everything that may change between two turns: state, user models (by the soul and by the
owner), the psyche, whispers, two speakers of one channel and others who only listen in, long and almost empty messages,
restarts, pauses. It is counted, and so exact.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import script
from claudius.memory.whispers import Whisper
from claudius.perception import SELF, shared
from claudius.provider import Delta, Done, Event, Request, estimate
from command import Bench, alone
from figures import Beside, Figure, bound
from ours import SUMMARY, Soul

TURNS, QUICK_TURNS = 1200, 300
CONVERSATIONS = 12
SEED = 7
KEPT = bound("P7.kept")
_FOLDED = re.compile(r'(?:<data-\w+>\n)?{"kind":"(?:summary|left_out)"')
STATE = "<soul_state_check>true</soul_state_check>\n<soul_state_update>\n{}\n</soul_state_update>"
LINES = ("emotionalState: engaged", "emotionalState: neutral", "currentTopic: hinges", "currentTask: measure the door")


@dataclass(slots=True)
class Fickle:
    """A model whose replies learn, change the mood, or do neither. It keeps its requests by conversation."""

    chance: random.Random
    name: str = "fickle"
    model: str = "fickle"
    asked: int = 0
    requests: defaultdict[str, list[Request]] = field(default_factory=lambda: defaultdict(list))

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Return the script's next reply, sometimes with a change."""
        text = SUMMARY
        if request.purpose != "summary":
            self.requests[request.conversation].append(request)
            self.asked += 1
            update = f"- fact {self.asked}\n- {script.prose(120, self.asked)}" if self.chance.random() < 0.3 else ""
            text = script.reply(self.asked % script.DIFFERENT, update=update)
            if self.chance.random() < 0.3:
                text += "\n" + STATE.format(self.chance.choice(LINES))
        yield Delta(text)
        yield Done(text=text, usage=estimate(request, text), provider=self.name, model=self.model)

    async def aclose(self) -> None:
        """Hold nothing, so do nothing."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two consecutive requests of one conversation."""

    is_kept: bool
    """Whether the second request begins with the first one's system and history."""
    is_compaction: bool


def measure(bench: Bench) -> Iterator[Figure]:
    """Talk once, and compare every request with the one before it."""
    turns = QUICK_TURNS if bench.is_quick else TURNS
    voice = Fickle(random.Random(SEED))
    asyncio.run(_talk(bench.home("ours"), voice, turns))
    pairs = [pair for requests in voice.requests.values() for pair in _pairs(requests)]
    others = [pair for pair in pairs if not pair.is_compaction]
    every = sum(pair.is_kept for pair in pairs) / len(pairs)
    yield Figure(
        id="P7",
        name="prefix stability, but for compaction",
        unit="share",
        is_counted=True,
        samples=[sum(pair.is_kept for pair in others) / len(others)],
        beside=(Beside(name="every byte kept", bound=KEPT, samples=[1.0]),),
        note=(
            f"{len(pairs)} pairs of {len(voice.requests)} conversations, seed {SEED}; "
            f"{len(pairs) - len(others)} of them compactions (messages of up to 3,000 characters), "
            f"with those {every:.3f}; the psyche on, whispers now and then"
        ),
    )


def _pairs(requests: Sequence[Request]) -> Iterator[Pair]:
    for before, now in pairwise(requests):
        is_kept = now.system == before.system and now.history[: len(before.history)] == before.history
        opening = now.history[0].content if now.history else ""
        is_folded = _FOLDED.match(opening) is not None and before.history[:1] != now.history[:1]
        yield Pair(is_kept, is_folded and now.system == before.system)


async def _talk(root: Path, voice: Fickle, turns: int) -> None:
    chance = random.Random(SEED)
    now = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

    def clock() -> datetime:
        return now

    soul = Soul(root / "soul", voice, clock=clock)
    await soul.open()
    places = [f"slack:T1:C{number}:{number}.0" for number in range(CONVERSATIONS // 2)]
    places += [f"terminal:local:main:{number}" for number in range(CONVERSATIONS - len(places))]
    people = [f"slack:T1:U{number}" for number in range(4)]
    for place in places:
        if place.startswith("slack"):
            await soul.store.people.know_members(shared(place), people, now)
    for _ in range(turns):
        now += timedelta(seconds=chance.choice((5, 60, 600)))
        place = chance.choice(places)
        person = chance.choice(people[:2]) if place.startswith("slack") else "terminal:local:tom"
        audience = shared(place) if place.startswith("slack") else f"private:{person}"
        await _disturb(soul, chance, person, audience, now)
        text = script.prose(chance.choice((2, 40, 180, 3000)), voice.asked)
        await soul.turn(place, person, audience=audience, text=text)
    await soul.close()


async def _disturb(soul: Soul, chance: random.Random, person: str, audience: str, now: datetime) -> None:
    """Change something from outside, or restart."""
    match chance.randrange(12):
        case 0:
            await soul.store.documents.set_state("currentTopic", script.prose(30, chance.randrange(99)), audience, now)
        case 1:
            markdown = f"# {person}\n\n## Persona\n- {script.prose(200, chance.randrange(99))}\n"
            await soul.store.documents.set_model(person, audience, markdown, "by hand", "owner", now)
        case 2:
            await soul.close()
            await soul.open()
        case 3:
            line, until = script.prose(60, chance.randrange(99)), now + timedelta(hours=24)
            whisper = Whisper(daimon="kothar", text=line, transport="offer", sources=(SELF,), at=now, expires_at=until)
            await soul.store.whispers.keep_whisper(whisper)


if __name__ == "__main__":
    alone(__file__)
