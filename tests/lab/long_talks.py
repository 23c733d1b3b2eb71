"""Feed long conversations through real turns, ask about them later elsewhere, and see what stands in the prompt.

`read_locomo` reads one file of the public set LoCoMo (CC BY-NC, never shipped). `told` lives a conversation through
`take_turn` on its own dates; `asked` puts each question in a conversation of its own, three weeks later, to a provider
that keeps the prompt and answers nothing, so that nothing that is asked becomes a memory. Source: the memory design, 5.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from claudius.cognition.mind import Mind, lately
from claudius.cognition.steps import STEPS
from claudius.cognition.turn import take_turn
from claudius.config import Settings
from claudius.errors import ProviderError
from claudius.home import Home, shipped
from claudius.memory.sqlite import SqliteStore
from claudius.perception import MessageExtra, Perception, private, shared
from claudius.provider import Delta, Done, Event, Request, estimate
from claudius.soul import SoulSource

LATER = timedelta(days=21)
PACE = timedelta(seconds=60)
"""Between two messages of one sitting."""
UNANSWERABLE = 5
"""The category of LoCoMo's questions that have no answer."""


class Said(msgspec.Struct, frozen=True):
    """One message: its id in the set, when and by whom it was said, and what its picture shows."""

    id: str
    at: datetime
    speaker: str
    text: str
    picture: str = ""


class Question(msgspec.Struct, frozen=True):
    """One question and the ids of the messages it can be answered from; none if it has no answer."""

    text: str
    evidence: tuple[str, ...]
    is_answerable: bool = True


class LongTalk(msgspec.Struct, frozen=True):
    """One long conversation of two people, with questions."""

    name: str
    people: tuple[str, str]
    said: tuple[Said, ...]
    questions: tuple[Question, ...]


def read_locomo(path: Path) -> LongTalk:
    """Read one file of the set."""
    tree: dict[str, Any] = json.loads(path.read_text("utf-8"))
    sessions = sorted(int(key.split("_")[1]) for key in tree if re.fullmatch(r"session_\d+", key))
    said = tuple(one for n in sessions for one in _session(tree[f"session_{n}"], tree[f"session_{n}_date_time"]))
    known = {one.id for one in said}
    questions = []
    for qa in tree["qa"]:
        ids = [one for text in qa.get("evidence", ()) for one in re.findall(r"D\d+:\d+", text) if one in known]
        is_answerable = qa["category"] != UNANSWERABLE
        if ids or not is_answerable:
            questions.append(Question(qa["question"], tuple(dict.fromkeys(ids)), is_answerable))
    return LongTalk(path.stem, (tree["speaker_a"], tree["speaker_b"]), said, tuple(questions))


def _session(lines: Sequence[dict[str, Any]], when: str) -> Iterator[Said]:
    began = datetime.strptime(when, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    for n, line in enumerate(lines):
        yield Said(line["dia_id"], began + n * PACE, line["speaker"], line["text"], line.get("blip_caption", ""))


@dataclass(slots=True)
class Listener:
    """A model that keeps the newest prompt, and either says next to nothing or, while asked, fails."""

    is_asked: bool = False
    tail: str = ""
    says: str = "Okay."
    name: str = "listener"
    model: str = "listener"

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Keep the prompt; answer, or refuse to."""
        if request.purpose != "summary":
            self.tail = request.tail
            if self.is_asked:
                raise ProviderError("it only listens")
        text = "They talked." if request.purpose == "summary" else f"<external_dialogue>{self.says}</external_dialogue>"
        yield Delta(text)
        yield Done(text=text, usage=estimate(request, text), provider=self.name, model=self.model)

    async def aclose(self) -> None:
        """Hold nothing, so do nothing."""


@dataclass(slots=True)
class Life:
    """One soul on one home, with a calendar of its own."""

    store: SqliteStore
    mind: Mind
    voice: Listener
    times: list[datetime] = field(default_factory=lambda: [datetime(2026, 1, 1, tzinfo=UTC)])
    heard: int = 0

    async def hear(self, person: str, text: str, at: datetime, conversation: str, **more: Any) -> Perception:
        """Have a person say something, and take the turn; return what was heard."""
        self.times[0], self.heard = at, self.heard + 1
        heard = Perception(
            key=f"slack:{secrets.token_hex(8)}",
            conversation=conversation,
            audience=more.pop("audience", private(person)),
            person=person,
            name=more.pop("name", person.rpartition(":")[2]),
            text=text,
            at=at,
            position=f"{int(at.timestamp() * 1e6):020d}.{self.heard:09d}",
            **more,
        )
        await self.store.inbox.accept((heard,), at)
        pending = await self.store.inbox.oldest(conversation)
        assert pending is not None
        await take_turn(pending, self.mind)
        return heard

    async def ask(self, person: str, text: str, at: datetime, **more: Any) -> list[dict[str, str]]:
        """Ask in a conversation of its own; return the remembered lines of the prompt. Nothing of it is kept."""
        self.voice.is_asked, self.voice.tail = True, ""
        try:
            place = more.pop("conversation", f"slack:T1:Dasked{self.heard + 1}:")
            await self.hear(person, text, at, place, **more)
        except ProviderError:
            pass
        else:
            assert not self.voice.tail, "the listener was heard"
        self.voice.is_asked = False
        return remembered(self.voice.tail)


def remembered(tail: str) -> list[dict[str, str]]:
    """Return the lines of memory in a prompt's tail. Pure."""
    found: list[dict[str, str]] = []
    for line in tail.splitlines():
        if line.startswith('{"kind":"memory"'):
            found += json.loads(line)["lines"]
    return found


@asynccontextmanager
async def living(root: Path, env: dict[str, str] | None = None) -> AsyncIterator[Life]:
    """Run a soul on a new home."""
    home = Home(root)
    home.create()
    settings = Settings(home, {"CLAUDIUS_SUBPROCESS_ENABLED": "0"} | (env or {}))
    soul = SoulSource(home.soul, shipped("soul"), steps=tuple(STEPS))
    store, voice, times = SqliteStore(home.database), Listener(), [datetime(2020, 1, 1, tzinfo=UTC)]
    mind = Mind(
        store=store,
        provider=voice,
        soul=lately(soul.current),
        config=lately(settings.current),
        clock=lambda: times[0],
        nonce=lambda: secrets.token_hex(16),
    )
    await store.start(secrets.token_hex(8), times[0])
    try:
        yield Life(store, mind, voice, times)
    finally:
        await store.close(clean=True)


def ids_of(talk: LongTalk) -> dict[str, str]:
    """Return the network id of each speaker. Pure."""
    return {name: f"slack:T1:U{n}" for n, name in enumerate(talk.people)}


async def told(life: Life, talk: LongTalk, *, overheard: bool = False) -> None:
    """Have both people say everything on its own date, each message owed a reply, or all of it only overheard."""
    place = "slack:T1:C1:"
    ids = ids_of(talk)
    await life.store.people.know_members(shared(place), tuple(ids.values()), talk.said[0].at)
    for one in talk.said:
        pictures = ({"name": "picture.jpg", "type": "image/jpeg", "alt": one.picture},) if one.picture else ()
        await life.hear(
            ids[one.speaker],
            one.text,
            one.at,
            place,
            audience=shared(place),
            name=one.speaker,
            owes=not overheard,
            extra=MessageExtra(files=pictures),
        )


async def asked(life: Life, talk: LongTalk) -> list[tuple[Question, list[dict[str, str]]]]:
    """Ask every question, and return with each the lines of memory that its prompt held."""
    at = talk.said[-1].at + LATER
    person = ids_of(talk)[talk.people[0]]
    await life.store.people.know_members(shared("slack:T1:C1:"), tuple(ids_of(talk).values()), at)
    return [(one, await life.ask(person, one.text, at, name=talk.people[0])) for one in talk.questions]


def stands(one: Said, lines: Sequence[dict[str, str]], most: int | None = None) -> bool:
    """Return whether what was said stands in these lines, the first `most` of them if given. Pure."""
    for line in lines[:most]:
        for text in (line["text"], line.get("before", "") if most is None else ""):
            part = text.strip("… ")
            if part and (part == one.text.strip() or (len(part) >= 80 and part in one.text)):
                return True
    return False
