"""LoCoMo, a public set of long conversations: what of them stands in a prompt three weeks later.

    bench/locomo.py PATH [--overheard] [--meaning] [--json]

PATH is the set's own file, which its owner has: it is CC BY-NC 4.0, and never shipped. Its key is wrong in some six of
a hundred answers, so evidence is the figure. `told` lives a conversation through `take_turn` on its own dates; `asked`
puts each question in a conversation of its own, three weeks later, to a provider that keeps the prompt and answers
nothing, so that nothing that is asked becomes a memory. `measured` counts. Source: Maharana et al., "Evaluating Very
Long-Term Conversational Memory of LLM Agents", 2024.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from claudius.cognition.mind import Mind, lately
from claudius.cognition.steps import STEPS
from claudius.cognition.turn import take_turn
from claudius.compose import embedder_of
from claudius.config.load import Settings, load
from claudius.errors import ProviderError, UsageProblem
from claudius.home import Home, shipped
from claudius.memory.moments import Embedder, Semantic
from claudius.memory.ranking import asked_for, rank
from claudius.memory.sqlite import SqliteStore
from claudius.perception import MessageExtra, Perception, private, shared
from claudius.provider import Delta, Done, Event, Request, estimate
from claudius.soul import SoulSource

UNANSWERABLE = 5
"""The category of questions that the conversation does not answer."""
PACE = timedelta(minutes=1)
"""Between two messages of one sitting."""
_DATED = "%I:%M %p on %d %B, %Y"
_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D\d+:\d+")


class TalkMessage(Struct, frozen=True):
    """One message; `id` is what evidence refers to."""

    id: str
    at: datetime
    speaker: str
    text: str
    picture: str = ""
    """What its picture shows."""


class TalkQuestion(Struct, frozen=True):
    """One question, and the ids of the messages that answer it."""

    text: str
    evidence: tuple[str, ...]
    is_answerable: bool


class LongTalk(Struct, frozen=True):
    """One long conversation, oldest message first."""

    name: str
    messages: tuple[TalkMessage, ...]
    questions: tuple[TalkQuestion, ...]


def read(path: Path) -> list[LongTalk]:
    """Read every conversation of a file, or of a directory with a file each. Raises: UsageProblem."""
    try:
        if path.is_dir():
            files = sorted(path.rglob("*.json"))
            return [_conversation({"sample_id": one.stem, **msgspec.json.decode(one.read_bytes())}) for one in files]
        return [_conversation(one) for one in msgspec.json.decode(path.read_bytes())]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, msgspec.MsgspecError) as error:
        raise UsageProblem(f"{path}: {error}: give the set's own JSON file") from error


def _conversation(row: Mapping[str, Any]) -> LongTalk:
    messages = tuple(_messages(row.get("conversation", row)))
    known = {one.id for one in messages}
    questions = [
        TalkQuestion(
            text=str(one["question"]),
            evidence=tuple(id_ for id_ in _TURN.findall(str(one.get("evidence", ()))) if id_ in known),
            is_answerable=one.get("category") != UNANSWERABLE,
        )
        for one in row["qa"]
    ]
    return LongTalk(name=str(row["sample_id"]), messages=messages, questions=tuple(questions))


def _messages(told: Mapping[str, Any]) -> Iterator[TalkMessage]:
    sessions = sorted((int(found[1]), key) for key in told if (found := _SESSION.fullmatch(key)))
    for _, key in sessions:
        began = datetime.strptime(told[f"{key}_date_time"].strip(), _DATED).replace(tzinfo=UTC)  # it names no zone
        for number, one in enumerate(told[key]):
            at = began + number * PACE
            picture = str(one.get("blip_caption") or "")
            yield TalkMessage(id=one["dia_id"], at=at, speaker=one["speaker"], text=one["text"], picture=picture)


LATER = timedelta(days=21)
PLACE = "slack:T1:C1:"
FIRST = 10
"""How many of what the search ranks count for E2."""


@dataclass(slots=True)
class Listener:
    """A model that keeps the newest prompt, and either says next to nothing or, while asked, fails."""

    is_asked: bool = False
    tail: str = ""
    says: str = "Okay."
    acts: str = "none"
    name: str = "listener"
    model: str = "listener"

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Keep the prompt; answer, or refuse to."""
        if request.purpose != "summary":
            self.tail = request.tail
            if self.is_asked:
                raise ProviderError("it only listens")
        said = f"<acts>{self.acts}</acts><external_dialogue>{self.says}</external_dialogue>"
        text = "They talked." if request.purpose == "summary" else said
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
    semantic: Semantic | None = None

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
        if pending:
            await take_turn(pending, self.mind)
        return heard

    async def ask(self, person: str, text: str, at: datetime, **more: Any) -> list[dict[str, str]]:
        """Ask in a conversation of its own; return the remembered lines of the prompt. Nothing of it is kept."""
        self.voice.is_asked, self.voice.tail = True, ""
        try:
            place = more.pop("conversation", f"slack:T1:Dasked{self.heard + 1}:")
            await self.hear(person, text, at, place, **more)
        except ProviderError:
            pass  # the prompt is all that is wanted
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
async def living(
    root: Path, env: dict[str, str] | None = None, *, embedder: Callable[[], Embedder] | None = None
) -> AsyncIterator[Life]:
    """Run a soul on a new home; with an `embedder`, moments are searched by meaning, too."""
    home = Home(root)
    home.create()
    settings = Settings(home, {"CLAUDIUS_SUBPROCESS_ENABLED": "0"} | (env or {}))
    soul = SoulSource(home.soul, shipped("soul"), steps=STEPS)
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
        yield Life(store, mind, voice, times, semantic=store.search_by_meaning(embedder) if embedder else None)
    finally:
        await store.close(clean=True)


def ids_of(talk: LongTalk) -> dict[str, str]:
    """Return the network id of each speaker. Pure."""
    return {name: f"slack:T1:U{n}" for n, name in enumerate(_speakers(talk))}


def _speakers(talk: LongTalk) -> list[str]:
    """Return who speaks, the first first."""
    return list(dict.fromkeys(one.speaker for one in talk.messages))


async def told(life: Life, talk: LongTalk, *, overheard: bool = False) -> None:
    """Have both people say everything on its own date, each message owed a reply, or all of it only overheard."""
    place, ids = PLACE, ids_of(talk)
    await life.store.people.know_members(shared(place), tuple(ids.values()), talk.messages[0].at)
    for one in talk.messages:
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
    if life.semantic:
        await life.semantic.catch_up()


async def ranked(life: Life, talk: LongTalk) -> list[tuple[TalkQuestion, frozenset[str]]]:
    """Return each question with the texts that the search ranks first, whatever a prompt has room for."""
    at, ids = talk.messages[-1].at + LATER, ids_of(talk)
    name = _speakers(talk)[0]
    await life.store.people.know_members(shared(PLACE), tuple(ids.values()), at)
    found = []
    for one in talk.questions:
        terms = asked_for(one.text)
        seen = await life.store.moments.remember(_question(ids[name], name, one.text, at), terms)
        first = rank(terms, seen, at.timestamp(), most=FIRST)[:FIRST]
        found.append((one, frozenset(moment.moment.text.strip() for moment in first)))
    return found


def _question(person: str, name: str, text: str, at: datetime) -> Perception:
    return Perception(
        key="", conversation="slack:T1:Dranked:", audience=private(person), person=person, name=name, text=text, at=at,
    )  # fmt: skip


async def asked(life: Life, talk: LongTalk) -> list[tuple[TalkQuestion, list[dict[str, str]]]]:
    """Ask every question, and return with each the lines of memory that its prompt held."""
    at = talk.messages[-1].at + LATER
    person = ids_of(talk)[_speakers(talk)[0]]
    await life.store.people.know_members(shared(PLACE), tuple(ids_of(talk).values()), at)
    return [(one, await life.ask(person, one.text, at, name=_speakers(talk)[0])) for one in talk.questions]


def stands(one: TalkMessage, lines: Sequence[dict[str, str]], most: int | None = None) -> bool:
    """Return whether what was said is in these lines, the first `most` of them if given. Pure."""
    for line in lines[:most]:
        for text in (line["text"], line.get("before", "") if most is None else ""):
            part = text.strip("… ")
            if part and (part == one.text.strip() or (len(part) >= 80 and part in one.text)):
                return True
    return False


class MemoryFigures(Struct, frozen=True, kw_only=True):
    """What was measured on one conversation, or on all of them."""

    name: str
    questions: int
    evidence: float
    """E1: the share of a question's evidence that stood in its prompt, three weeks later in another conversation."""
    found: float
    """E2: the share of a question's evidence among the first ten that the search ranks."""
    unanswerable: int
    nothing: float
    """E3: the share of unanswerable questions for which no moment was shown."""
    tokens: float
    """E9: the ninety-fifth percentile of a block's tokens (characters / 4)."""


async def measured(
    root: Path,
    talks: Sequence[LongTalk],
    *,
    overheard: bool = False,
    embedder: Callable[[], Embedder] | None = None,
) -> list[MemoryFigures]:
    """Live each conversation in a home of its own below `root`; return its figures, those of all of them last."""
    found: list[tuple[str, list[float], list[float], list[bool], list[float]]] = []
    for talk in talks:
        async with living(root / talk.name, embedder=embedder) as life:
            await told(life, talk, overheard=overheard)
            answers = await asked(life, talk)
            first = await ranked(life, talk)
        said = {one.id: one for one in talk.messages}
        shares = [
            sum(stands(said[one], lines) for one in question.evidence) / len(question.evidence)
            for question, lines in answers
            if question.is_answerable and question.evidence
        ]
        best = [
            sum(said[one].text.strip() in texts for one in question.evidence) / len(question.evidence)
            for question, texts in first
            if question.is_answerable and question.evidence
        ]
        silent = [not lines for question, lines in answers if not question.is_answerable]
        sizes = sorted(
            len(json.dumps(lines, ensure_ascii=False, separators=(",", ":"))) / 4 for _, lines in answers if lines
        )
        found.append((talk.name, shares, best, silent, sizes))
    shares, best = [one for part in found for one in part[1]], [one for part in found for one in part[2]]
    silent, sizes = [one for part in found for one in part[3]], [one for part in found for one in part[4]]
    return [*(_figures(*one) for one in found), _figures("all", shares, best, silent, sizes)]


def _figures(
    name: str, shares: Sequence[float], best: Sequence[float], silent: Sequence[bool], sizes: Sequence[float]
) -> MemoryFigures:
    ordered = sorted(sizes)
    return MemoryFigures(
        name=name,
        questions=len(shares),
        evidence=round(sum(shares) / len(shares), 3) if shares else 0.0,
        found=round(sum(best) / len(best), 3) if best else 0.0,
        unanswerable=len(silent),
        nothing=round(sum(silent) / len(silent), 3) if silent else 0.0,
        tokens=round(ordered[int(0.95 * (len(ordered) - 1))], 1) if ordered else 0.0,
    )


def main() -> None:
    """Print the figures of a file of conversations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="the set's own JSON file, or a directory of them")
    parser.add_argument("--overheard", action="store_true", help="the soul only overhears what is said")
    parser.add_argument("--meaning", action="store_true", help="moments are searched by the settings' embedder, too")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args()
    embedder = embedder_of(load(Home.of(os.environ), os.environ).config) if given.meaning else None
    if given.meaning and not embedder:
        sys.exit("--meaning needs an embedder: pip install 'claudius-daemon[recall]'")
    with tempfile.TemporaryDirectory(prefix="claudius-eval-") as root:
        found = asyncio.run(measured(Path(root), read(given.path), overheard=given.overheard, embedder=embedder))
    if given.json:
        print(json.dumps([msgspec.to_builtins(one) for one in found]))
        return
    for one in found:
        print(
            f"{one.name}: {one.evidence:.3f} of the evidence in the prompt ({one.questions} questions), "
            f"{one.found:.3f} among the first ten found, nothing shown for "
            f"{one.nothing:.3f} of {one.unanswerable} unanswerable ones, block p95 {one.tokens:.0f} tokens"
        )


if __name__ == "__main__":
    main()
