"""S31: what the soul wrote from the lines of a person who is forgotten is forgotten too, in whatever words.

The rows are those of `cases/forget.json`: over a loopback Slack an obedient model writes what it was told in every
place that a model may write; then that person is forgotten, or one message is deleted or edited, and everything is
looked through: prompts, rows, files, git.
"""

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from claudius.adapters.slack.adapter import SlackAdapter, SlackOptions
from claudius.errors import StoreError
from claudius.home import Home, shipped
from claudius.intent import Utterance
from claudius.memory import seen
from claudius.memory.database import StorePlace
from claudius.memory.erasing import Posted
from claudius.memory.search import plain
from claudius.memory.seen import Seen
from claudius.provider import Event, Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from lab.loopback.slack.records import Entry
from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import APP_TOKEN, BOT_TOKEN, BOT_USER
from slack_side import QUICK

CASES = json.loads((Path(__file__).parents[1] / "cases" / "forget.json").read_text("utf-8"))
ROWS = {row["id"]: row for row in CASES["rows"]}
LATER = {"postgres-files", "canary-name", "forget-that", "forget-words", "forget-last", "forget-anothers", "linked"}
"""Rows of these kinds that other tests hold."""
TOM, BEN = "U7", "U8"
HALL = "rehearsal:t:hall:1"
TOM_ID, BEN_ID = "slack:T1:U7", "slack:T1:U8"
STORES = ("sqlite", "postgresql")
PROMPTS = 20
BEES = "I keep bees on my roof"
WORD = re.compile(r"zq-\w+")
ILLNESS = CASES["stories"]["illness"]
EVERY_TURN = {
    "CLAUDIUS_USER_MODEL_INTERVAL": "1",
    "CLAUDIUS_SOUL_STATE_INTERVAL": "1",
    "CLAUDIUS_CORTEX_ENABLED": "true",
    "CLAUDIUS_ACCESS_OVERHEAR": "true",
}


def kind(*names: str) -> list[Any]:
    """Return the rows of these kinds that are tested here."""
    return [pytest.param(row, id=row["id"]) for row in CASES["rows"] if row["kind"] in names and row["id"] not in LATER]


def asked(request: Request) -> str:
    """Return all that a model is shown but the system text, which is the same for everyone."""
    return json.dumps(asdict(request) | {"system": "", "known": ""}, ensure_ascii=False, default=str)


@dataclass(slots=True)
class Obedient(Scripted):
    """A model that writes what it is told of in every place that it may write, and waits where a test wants it to."""

    told: Callable[[str], Mapping[str, str] | None] = lambda _: None
    """What to write where, from a prompt; None = nothing of it stands there."""
    slow: str = ""
    """Hold the answer to a message with these words."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Answer from the prompt."""
        self.default = self.answer
        super(Obedient, self).__post_init__()

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Wait if asked to, then answer."""
        if self.slow and self.slow in request.tail:
            self.begun.set()
            await self.go_on.wait()
        async for event in super(Obedient, self).complete(request):
            yield event

    def answer(self, request: Request) -> str:
        """Write in every place what the prompt tells."""
        wrote = self.told(asked(request))
        if request.purpose == "cortex":
            return cortex(wrote)
        if request.purpose == "summary":
            return wrote["soul state"] if wrote else "They talked."
        if wrote:
            return sections(
                wrote["reply to Ben"],
                wrote["thought"],
                wrote["portrait of Ben"],
                wrote["change note"],
                wrote["soul state"],
            )
        bees = "- Keeps bees on a roof" if BEES in request.tail else ""
        return sections("I am listening.", "Somebody speaks.", bees, "told me of bees" if bees else "", "")


def sections(said: str, thought: str, portrait: str, note: str, state: str) -> str:
    """Return a reply with all of its sections."""
    heading = "Interests" if "bees" in portrait else "Persona"
    lines = [
        f"<internal_monologue>{thought}</internal_monologue>",
        f"<external_dialogue>{said}</external_dialogue>",
        f"<user_model_check>{'true' if portrait else 'false'}</user_model_check>",
    ]
    if portrait:
        lines += [
            f'<user_model_update section="{heading}">{portrait}</user_model_update>',
            f"<model_change_note>{note}</model_change_note>",
        ]
    lines.append(f"<soul_state_check>{'true' if state else 'false'}</soul_state_check>")
    if state:
        lines.append(f"<soul_state_update>\n{state}\ncurrentTopic: {state.partition(': ')[2]}\n</soul_state_update>")
    return "\n".join(lines)


def cortex(wrote: Mapping[str, str] | None) -> str:
    """Return what the second mind makes of it."""
    what = wrote["thought"] if wrote else "All is quiet."
    about = {"peer_id": BEN_ID, "trust": 2, "rationale": what}
    belief = {"key": "worry", "value": what, "rationale": what, "peer_id": BEN_ID, "action": "add"}
    return json.dumps({"summary": what, "assessments": [about], "beliefs": [belief], "directives": []})


@dataclass(slots=True)
class Life:
    """A soul on Slack with Tom and Ben, and everything that it keeps."""

    soul: Alive
    voice: Obedient
    server: SlackServer
    home: Home
    url: str
    threads: dict[str, str] = field(default_factory=dict)
    answers: int = 0

    async def say(self, place: str, who: str, text: str, *, answered: bool = True, letter: bytes = b"") -> str:
        """Have a person say something in a place, and wait for the answer; return the message's ts."""
        world, user = self.server.world, {"Tom": TOM, "Cem": "U9"}.get(who, BEN)
        text = text.replace("{bot}", f"<@{BOT_USER}>")
        channel = "C1" if "#" in place or "thread" in place else {TOM: "D7", BEN: "D8"}.get(user, "D9")
        thread = self.threads.get("last") if "same thread" in place or place == "the thread" else None
        before = len(self.voice.requests)
        if letter:
            ts = await world.upload(channel, user, "letter.txt", letter, text=text, thread_ts=thread)
        else:
            ts = await world.say(channel, user, text, thread_ts=thread)
        if ("thread" in place and thread is None) or "#" in place:
            self.threads["last"] = ts
        if answered:
            async with asyncio.timeout(20):
                while len(self.voice.requests) == before:
                    await asyncio.sleep(0.005)
        await self.quiet()
        return ts

    async def quiet(self) -> None:
        """Wait until nothing is left to do."""
        await self.server.world.until_quiet()
        await self.soul.idle()

    async def command(self, user: str, text: str) -> str:
        """Give a command; return what is answered to it."""
        self.answers += 1
        await self.server.world.slash("D7" if user == TOM else "D8", user, "/claudius", text)
        await self.server.world.until_called("response_url", self.answers, within_s=60)
        return [one.text for one in await self.server.world.trace() if one.kind == "response"][-1]

    async def forget_tom(self) -> str:
        """Have Tom forget himself; return the receipt."""
        await self.command(TOM, "forget me")
        return await self.command(TOM, "forget me yes")

    async def later_prompts(self) -> list[str]:
        """Have Ben talk on in the thread, in his direct message and in new threads; return all prompts."""
        begin = len(self.voice.requests)
        places = ("the thread", "direct", "#ops", "direct")
        n = 0
        while len(self.voice.requests) - begin < PROMPTS:
            await self.say(places[n % len(places)], "Ben", f"{{bot}} How is he, and what did he say? {n}")
            n += 1
        return [asked(one) for one in self.voice.requests[begin:]]

    async def posts(self) -> list[Entry]:
        """Return what we said aloud."""
        return [one for one in await self.server.world.visible() if one.kind != "response"]

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield everything that is kept, as (where, what): rows, files unpacked, git objects and names."""
        yield from self._rows()
        for path in sorted(self.home.root.rglob("*")):
            yield "name", str(path)
            if path.is_file():
                with suppress(FileNotFoundError):
                    content = path.read_bytes()
                    yield str(path), content.decode("utf-8", "ignore")
                    with suppress(zlib.error):
                        yield f"{path} unpacked", zlib.decompress(content).decode("utf-8", "ignore")
        for git in self.home.root.rglob(".git"):
            command = ["git", "--git-dir", str(git), "cat-file", "--batch-all-objects", "--batch"]
            yield "git", subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "ignore")

    def _rows(self) -> Iterator[tuple[str, str]]:
        if self.url:
            import psycopg  # noqa: PLC0415 - an extra

            with psycopg.connect(self.url) as made:
                names = made.execute(
                    "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
                ).fetchall()
                for (name,) in names:
                    columns = made.execute(
                        "SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute"
                        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
                        [f'"{name}"'],
                    ).fetchall()
                    wanted = ", ".join(f'"{one}"' + ("" if kind == "bytea" else "::text") for one, kind in columns)
                    for row in made.execute(f'SELECT {wanted} FROM "{name}"').fetchall():  # noqa: S608 - our own names
                        yield from _read(name, row)
            return
        with closing(sqlite3.connect(f"file:{self.home.database}?mode=ro", uri=True)) as kept:
            names = kept.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
            )
            for (name,) in names.fetchall():
                for row in kept.execute(f'SELECT * FROM "{name}"').fetchall():  # noqa: S608 - our own names
                    yield from _read(name, row)

    def holding(self, *words: str) -> list[str]:
        """Return where any of these words is kept, apart from the soul's own texts."""
        own = "".join(path.read_text("utf-8") for path in shipped("soul").rglob("*.md")).casefold()
        sought = [word.casefold() for word in words]
        bare = [word for word in sought if word not in own]
        return sorted(
            {
                where
                for where, what in self.texts()
                if any(word in what.casefold() for word in (sought if where.startswith("row of") else bare))
            }
        )


def _read(table: str, row: Sequence[object]) -> Iterator[tuple[str, str]]:
    text = "\n".join(map(_shown, row))
    if table != "blob" or '{"files":' not in text:
        yield f"row of {table}", text


def _shown(value: object) -> str:
    if isinstance(value, memoryview):
        value = bytes(value)
    found = plain(value)
    return (found or b"").decode("utf-8", "ignore") if isinstance(value, str | bytes) else str(value)


@asynccontextmanager
async def living(
    home: Home, url: str, told: Callable[[str], Mapping[str, str] | None], **settings: str
) -> AsyncIterator[Life]:
    """Start a soul on a Slack with Tom and Ben."""
    store = None
    if url:
        from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

        store = PostgresStore(StorePlace(url), home=str(home.root))
    voice = Obedient(told=told)
    async with SlackServer() as server:
        world = server.world
        await world.set(retry_delays_s=(0.05, 0.2, 0.5), ack_deadline_s=3.0, refresh_grace_s=0.2)
        for user, name, direct in ((TOM, "Tom", "D7"), (BEN, "Ben", "D8")):
            await world.add_user(user, name)
            await world.join("C1", user, deliver=False)
            await world.add_channel(direct, kind="im", members=(BOT_USER, user))
        options = SlackOptions(BOT_TOKEN, APP_TOKEN, server.base_url, status="is thinking…")
        adapter = SlackAdapter(options, QUICK)
        adapter.appears_s = 0.05
        asked_for = EVERY_TURN | settings
        async with alive(
            home, voice, adapter=adapter, settings=asked_for, archives=True, reflects=True, store=store
        ) as soul:
            await world.until_connected()
            yield Life(soul, voice, server, home, url)


def story(row: Mapping[str, Any]) -> Callable[[str], Mapping[str, str] | None]:
    """Return what the model writes from a prompt that tells of the illness, as a row says."""
    wrote = {**ILLNESS["soul_wrote"], **row["input"].get("soul_wrote", {})}
    if "soul_wrote" in row["input"]:  # in other words, wherever the letters would have told it
        wrote |= {
            "reply to Ben": "One of you has fits.",
            "thought": "He has seizures.",
            "change note": "about seizures",
        }
    signs = ("epilepsy", "seizures", "has fits")

    def told(prompt: str) -> Mapping[str, str] | None:
        return wrote if any(one in prompt for one in signs) else None

    return told


async def archived(life: Life) -> None:
    """Wait until git holds every version."""
    archive = life.soul.server._archive
    assert archive
    while (await archive.round()).is_more:
        pass


async def lived(life: Life, said: Sequence[Sequence[str]]) -> None:
    """Live a story: first Ben tells of his bees, then what the story says is said."""
    await life.say("direct", "Ben", BEES)
    for place, who, text in said:
        await life.say(place, who, text)
    if life.soul.second:
        await life.soul.second.cortex.reflect()
    await life.say("direct", "Ben", "and how am I?")
    await archived(life)


@dataclass(slots=True)
class After:
    """What is left of a story after `forget me`, and what others keep."""

    before: list[str]
    receipt: str
    held: list[str]
    prompts: list[str]
    later: list[str]
    kept: list[list[str]]
    stays: list[str]
    about_tom: list[str]


LIVED: dict[str, After] = {}
"""Rows that differ only in where they look are lived once."""


async def after(home: Home, request: pytest.FixtureRequest, store: str, row: Mapping[str, Any]) -> After:
    """Live a row's story in a store, have Tom forget himself, and look everywhere."""
    one = f"{store} {json.dumps({key: value for key, value in row['input'].items() if key != 'look_in'})}"
    if one in LIVED:
        return LIVED[one]
    words = row["right"].get("lacks", ["epilepsy", "seizures"])
    said = row["input"].get("said", ILLNESS["said"])
    url = str(request.getfixturevalue("postgres_url")) if store == "postgresql" else ""
    async with living(home, url, story(row), CLAUDIUS_KOTHAR_ENABLED="1", CLAUDIUS_KOTHAR_MODE="speak") as life:
        await lived(life, said)
        told_aloud = [one for one in await life.posts() if one.text.startswith("Kothar: ")]
        assert bool(told_aloud) == any("#" in place for place, *_ in said)
        before = life.holding(*words)
        receipt = await life.forget_tom()
        held = life.holding(*words)
        prompts = await life.later_prompts()
        await archived(life)
        LIVED[one] = After(
            before=before,
            receipt=receipt,
            held=held,
            prompts=prompts,
            later=life.holding(*words),
            kept=[life.holding("keeps bees"), life.holding(BEES)],
            stays=life.holding(said[0][2].replace("{bot} ", "")),
            about_tom=[what for where, what in life.texts() if where == "row of fact" and TOM_ID in what],
        )
    return LIVED[one]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("row", kind("story"))
async def test_s31_what_was_written_from_their_lines_is_gone(
    home: Home, request: pytest.FixtureRequest, store: str, row: Mapping[str, Any]
) -> None:
    """After `forget me` neither the words nor a paraphrase is in a prompt, a row, a file or git; others keep theirs."""
    right = dict(row["right"])
    found = await after(home, request, store, row)

    assert found.before
    assert found.receipt.startswith("You are forgotten")
    assert all(found.kept)
    if row["input"].get("story"):
        words = right.pop("lacks")
        assert found.held == []
        assert [one for one in found.prompts if any(word.casefold() in one.casefold() for word in words)] == []
        assert found.later == []
        right.pop("because", right.pop("others_kept", ""))
    else:  # Ben's own words about him stay
        assert right.pop("facts_about_tom", 0) == len(found.about_tom)
        assert right.pop("bens_message", right.pop("bens_plan", ""))
        assert right.pop("receipt_says")  # the words of a receipt have tests of their own
        assert found.stays
    assert right == {}


def canaries(prompt: str) -> Mapping[str, str] | None:
    """Return what the model writes of the words of Tom's that its prompt holds."""
    found = " ".join(sorted(set(WORD.findall(prompt))))
    if not found:
        return None
    return {
        "reply to Ben": f"I heard {found}.",
        "thought": f"It was {found}.",
        "portrait of Ben": f"- Knows {found}",
        "change note": f"heard {found}",
        "soul state": f"conversationSummary: {found}",
    }


SAYS, PLAIN = "my word is {word}", "nothing of note"
SPOKEN: Mapping[str, tuple[str, str]] = {
    "a direct message": ("direct", SAYS),
    "a mention in a channel": ("#ops", f"{{bot}} {SAYS}"),
    "overheard in a channel": ("#ops", SAYS),
    "overheard in the soul's thread": ("the same thread", f"<@U9> {SAYS}"),
    "words that an edit replaced": ("the same thread", f"{{bot}} {SAYS}"),
    "words that an edit brought": ("the same thread", f"{{bot}} {PLAIN}"),
    "the text of a reminder": ("the same thread", "{bot} remind me tomorrow at 9 to say {word}"),
}
"""Where Tom says a word, and how."""
EDITED = {"words that an edit replaced": PLAIN, "words that an edit brought": SAYS}
RUNNING = {
    "a message whose turn runs when he asks to be forgotten": (),
    "a message that waits in line": ("one of two",),
}
"""Messages of Tom's that are not answered yet, after those that run."""


async def spoken(life: Life, where: str, word: str) -> None:
    """Have Tom say a word where a row says."""
    world = life.server.world
    if where in RUNNING:
        texts = [*RUNNING[where], SAYS.format(word=word)]
        life.voice.slow = texts[0]
        for text in texts:
            await world.say("D7", TOM, text)
            await life.voice.begun.wait()
        return await world.until_quiet()
    place, text = SPOKEN[where]
    is_heard = "{bot}" in text or place == "direct"
    ts = await life.say(place, "Tom", text.replace("{word}", word), answered=is_heard)
    if where in EDITED:
        await world.edit("C1", ts, f"<@{BOT_USER}> {EDITED[where].format(word=word)}")
    return await life.quiet()


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("row", kind("canary"))
async def test_s31_nothing_is_said_of_them_after_the_receipt(
    home: Home, request: pytest.FixtureRequest, store: str, row: Mapping[str, Any]
) -> None:
    """A word of Tom's is nowhere, though a turn of Ben's with it in its prompt ran when Tom was forgotten.

    That turn is thought again and answers once.
    """
    right = dict(row["right"])
    word, where = f"zq-{row['id'].replace('-', '')}", row["input"].get("where", "a mention in a channel")
    url = str(request.getfixturevalue("postgres_url")) if store == "postgresql" else ""
    async with living(home, url, canaries) as life:
        await life.say("#ops", "Ben", "{bot} good morning")
        await spoken(life, where, word)
        if not life.voice.slow:
            await life.say("the same thread", "Ben", "{bot} what was that?")
            await life.say("direct", "Ben", "what was that word?")
            await archived(life)
        before = life.holding(word)
        posted = len(await life.posts())
        life.voice.slow, life.voice.begun = life.voice.slow or "and now", life.voice.begun
        await life.server.world.say("C1", BEN, f"<@{BOT_USER}> and now?", thread_ts=life.threads["last"])
        if life.voice.slow == "and now":
            await life.voice.begun.wait()
        receipt = await life.forget_tom()
        at_receipt = len(await life.posts())
        life.voice.go_on.set()
        async with asyncio.timeout(20):
            while len(await life.posts()) == posted:
                await asyncio.sleep(0.01)
        await life.quiet()
        posts = await life.posts()
        held = life.holding(word)
        prompts = await life.later_prompts()
        await archived(life)
        later = life.holding(word)

    assert before or row["id"] == "canary-edited-away"  # an edit has erased it already
    assert receipt.startswith("You are forgotten")
    assert right.pop("posted_after_the_receipt") == len([one for one in posts[at_receipt:] if word in one.text])
    assert held == later == []
    assert [one for one in prompts if word in one] == []
    right.pop("gone_from", "")
    assert len(posts) == posted + 1  # Ben's turn: one answer, without Tom's lines
    assert word not in posts[-1].text
    right.pop("bens_turn", "")
    assert right == {}


AT = "2030-12-20T09:00"
OF_TOM = ["seizure", "fits", "epilepsy", "clinic", "trembl"]
BOOKED: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "und am Freitag": [
        {"do": "know", "kind": "home", "text": "Lives in Porto", "keys": ["city", "Portugal", "travel"]},
        {"do": "open", "text": "talks at the museum"},
        {"do": "remind", "at": AT, "text": "water the plants"},
    ],
    "Tom is ill": [{"do": "know", "kind": "other", "of": "Tom", "text": "Is ill", "keys": OF_TOM}],
    "what did he say": [
        {"do": "know", "kind": "other", "text": "Fears for a friend with seizures", "keys": OF_TOM},
        {"do": "know", "kind": "other", "of": "Tom", "text": "Has been to the clinic", "keys": OF_TOM},
        {"do": "open", "text": "when to call a friend who often trembles"},
        {"do": "promise", "at": AT, "text": "ask after the seizures"},
        {"do": "remind", "at": AT, "text": "call him, he trembles"},
    ],
}
"""What the model books from a message of Ben's with these words."""
BEN_SAID = "{bot} ich wohne jetzt in Porto, und am Freitag bin ich im Museum; the plants want water on the 20th"
BEN_TOLD = "{bot} Tom is ill, by the way"
"""Said where nobody heard Tom: Ben's own words stay, and what was booked of Tom does not."""
BEN_ASKED = "{bot} what did he say? Remind me to call him"


def booked(request: Request) -> str:
    """Book what a message asks for, and more of it than was said."""
    heard = request.tail.rpartition("## ")[2]
    acts = [json.dumps(one) for said, made in BOOKED.items() if said in heard for one in made]
    written = "\n".join(acts) or "none"
    return f"<acts>{written}</acts>\n{sections('I see.', 'Somebody speaks.', '', '', '')}"


@pytest.mark.parametrize("store", STORES)
async def test_s31_what_was_booked_for_others_stays_as_far_as_it_is_their_own(
    home: Home, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    """Facts, matters, plans and keys that come from Tom's line go, and his reaction; what Ben said in its sight stays.

    A word of Ben's in them saves none in which most are the soul's; a reminder that he asked for then stays in his.
    """
    monkeypatch.setattr(Obedient, "answer", lambda _, asking: booked(asking))
    url = str(request.getfixturevalue("postgres_url")) if store == "postgresql" else ""
    async with living(home, url, lambda _: None, CLAUDIUS_CORTEX_ENABLED="false") as life:
        await life.say("#ops, a thread", "Tom", "{bot} I have epilepsy, by the way")
        await life.say("the same thread", "Ben", BEN_SAID)
        await life.say("the same thread", "Ben", BEN_ASKED)
        await life.say("direct", "Ben", BEN_TOLD)
        await life.server.world.react("C1", (await life.posts())[0].ts, TOM, "seizure_ribbon")
        await life.quiet()
        before = life.holding(*OF_TOM)
        await life.forget_tom()
        held = life.holding(*OF_TOM)
        known = life.soul.records().person(BEN_ID)
        plans = [one["text"] for one in life.soul.records().plans()]

    kept_in = ("fact", "matter", "due", "moment", "reaction", "inbox")
    assert {f"row of {one}" for one in kept_in} <= set(before)
    assert held == []
    assert known is not None
    assert [one.text for one in known.facts] == ["Lives in Porto"]
    assert [one.text for one in known.open] == ["talks at the museum"]
    assert sorted(plans) == sorted(["water the plants", BEN_ASKED.replace("{bot} ", "")])


async def test_s31_a_derivation_that_follows_nothing_is_caught(
    home: Home, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant: where no turn is known to have seen anything, the story is left in rows, files and prompts."""
    row = ROWS["story-meaning"]
    monkeypatch.setattr(seen, "seen_in", lambda _: Seen())
    monkeypatch.setattr(sys.modules[__name__], "LIVED", {})

    found = await after(home, request, "sqlite", row)

    assert {"row of soul_state", "row of user_model", "row of turn_record"} <= set(found.held)
    assert [one for one in found.prompts if "seizures" in one]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", ["delete-message", "edit-message"])
async def test_s31_words_that_one_message_no_longer_holds_are_gone(
    home: Home, request: pytest.FixtureRequest, store: str, name: str
) -> None:
    """What was written with one message in sight and holds its words goes with them; all else stays, and its speaker."""
    row = ROWS[name]
    right, (place, who, text), then = dict(row["right"]), row["input"]["said"][0], row["input"]["then"]
    url = str(request.getfixturevalue("postgres_url")) if store == "postgresql" else ""
    async with living(home, url, story(row)) as life:
        await life.say("direct", "Ben", BEES)
        ts = await life.say(place, who, text)
        for other in row["input"]["said"][1:] or [["the same thread", "Ben", "{bot} what did Tom say?"]]:
            await life.say(*other)
        await archived(life)
        before = life.holding("epilepsy")
        is_edit = " edits it to: " in then
        if is_edit:
            await life.server.world.edit("C1", ts, f"<@{BOT_USER}> {then.partition(': ')[2]}")
        else:
            await life.server.world.delete("C1", ts)
        await life.quiet()
        await archived(life)
        held = [where for where in life.holding("epilepsy") if where.startswith("row of") or where == "git"]
        prompts = await life.later_prompts()
        kept, has = life.holding("keeps bees"), life.holding("a cold")
        known = [one["person"] for one in life.soul.records().people()]

    assert before
    assert held == []
    assert url or b"pileps" not in home.database.read_bytes()  # nor in the index of moments
    assert [one for one in prompts if "epilepsy" in one.casefold()] == []
    assert kept
    assert right.pop("lacks", ["epilepsy"]) == ["epilepsy"]
    assert bool(right.pop("has", [])) == is_edit == bool(has)
    assert right.pop("gone_from", "")[:7] in ("prompts", "")
    assert right.pop("tom", "still known") == "still known"
    assert TOM_ID in known
    assert right == {}


SHOWN = (
    "above, edited", "above, deleted", "unheard above, edited", "unheard above, deleted", "unheard forward, deleted",
    "unheard above, edited late", "unheard forward, deleted late", "a file, deleted late",
)  # fmt: skip


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(
    "how", [*SHOWN, "a file, deleted", "said in private too, deleted", "said in private by Cem too, deleted"]
)
async def test_s31_words_that_one_message_showed_beside_its_own_are_followed(
    home: Home, request: pytest.FixtureRequest, store: str, how: str
) -> None:
    """What stood above Ben's message, or in a file that Tom's brought, is followed as if it had been said there.

    So it is where Tom's message was never accepted, where Tom or Cem has told the soul alone the same, and late, when
    what records say of those turns has expired.
    """
    url = str(request.getfixturevalue("postgres_url")) if store == "postgresql" else ""
    overhears = str("unheard" not in how).lower()
    async with living(home, url, canaries, CLAUDIUS_ACCESS_OVERHEAR=overhears) as life:
        world, channel = life.server.world, "D7" if "file" in how else "C1"
        if "Cem" in how:
            await world.add_user("U9", "cem")
            await world.add_channel("D9", "cem", kind="im", members=(BOT_USER, "U9"))
        text, call = "my word is zq-4711", "" if "unheard" in how else "{bot} "
        if "file" in how:
            ts = await life.say("direct", "Tom", "please read", letter=b"Dear Tom, the word is zq-4711.")
            await life.say("direct", "Tom", "What did it say?")
        else:
            if "private" in how:
                await life.say("direct", "Cem" if "Cem" in how else "Tom", f"between us: {text}")
            ts = await life.say("#ops", "Tom", call + text, answered=bool(call))
            of = {"is_share": True, "author_id": TOM, "text": text, "channel_id": "C1", "channel_team": "T1", "ts": ts}
            if "forward" in how:
                await world.say("D8", BEN, "look at that", fields={"attachments": [of]})
                await life.quiet()
            else:
                await life.say("#ops", "Ben", "{bot} what was that?")
        await archived(life)
        before = life.holding("zq-4711")
        if "late" in how:
            tomorrow = life.soul.mind.clock() + timedelta(days=1)
            assert await life.soul.mind.store.turns.expire_records(tomorrow, tomorrow, PROMPTS)
        if "edited" in how:
            await world.edit(channel, ts, call.replace("{bot}", f"<@{BOT_USER}>") + "nothing of note")
        else:
            await world.delete(channel, ts)
        await life.quiet()
        await archived(life)
        held = [where for where in life.holding("zq-4711") if where.startswith("row of") or where == "git"]
        prompts = await life.later_prompts()

    assert {"row of turn_record", "row of outbox"} <= set(before)
    assert bool(held) == ("private" in how)  # where it stays, and what the soul made of it there
    reflects = '"trigger' if "private" in how else "no prompt"  # the cortex alone reads what was told in private
    assert [one for one in prompts if "zq-4711" in one and reflects not in one.replace("\\", "")] == []


async def test_s31_a_corrected_typo_touches_nothing(home: Home) -> None:
    """An edit that takes away no word that the soul repeated leaves thoughts, portraits and git as they are."""
    async with living(home, "", story(ROWS["story-thread"])) as life:
        ts = await life.say("a thread", "Tom", "{bot} I have epilepsy, by thee way")
        await life.say("the same thread", "Ben", "{bot} what did Tom say?")
        before = [
            what
            for where, what in life.texts()
            if where in ("row of user_model", "row of soul_state", "row of revision")
        ]
        await life.server.world.edit("C1", ts, f"<@{BOT_USER}> I have epilepsy, by the way")
        await life.quiet()
        after_it = [what for where, what in life.texts() if where in ("row of user_model", "row of soul_state")]
        thoughts = life.holding("Ben fears for Tom")

    assert set(after_it) <= set(before)
    assert thoughts


@pytest.mark.parametrize("deletes", [False, True])
async def test_s31_posts_that_tell_of_them_are_named_and_taken_down_where_that_is_wanted(
    home: Home, *, deletes: bool
) -> None:
    """The receipt names each post that still stands and was written from Tom's lines; `runtime.delete_replies` deletes them."""
    async with living(
        home, "", story(ROWS["story-thread"]), CLAUDIUS_RUNTIME_DELETE_REPLIES=str(deletes).lower()
    ) as life:
        await lived(life, ILLNESS["said"])
        forgetting = life.soul.server._forgetting
        receipt = await forgetting.forget(TOM_ID, life.soul.mind.clock(), "owner")
        shown = [
            one
            for channel in ("C1", "D8")
            for one in await life.server.world.messages(channel)
            if one.get("user") == BOT_USER and "epilepsy" in json.dumps(one)
        ]

    named = {one["post"] for one in receipt["posts"]}
    assert {one["ts"] for one in shown} <= named
    assert bool(shown) is bool(named) is not deletes
    assert {one["person"] for one in receipt["portraits"]} == {BEN_ID}
    assert {"turn", "user_model", "soul_state", "outbox", "belief"} <= receipt["derived"].keys()


async def test_s31_posts_are_deleted_though_the_process_died_before(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed when the rows are gone and no post is deleted yet, the next start deletes them; the receipt counts them."""
    deletes = {"CLAUDIUS_RUNTIME_DELETE_REPLIES": "true"}
    async with living(home, "", story(ROWS["story-thread"]), **deletes) as life:
        await lived(life, ILLNESS["said"])
        forgetting = life.soul.server._forgetting

        async def dies(_: object) -> Sequence[Posted]:
            """End the erasure here."""
            raise StoreError("killed")

        with monkeypatch.context() as patched:
            patched.setattr(forgetting, "_take_down", dies)
            with pytest.raises(StoreError):
                await forgetting.forget(TOM_ID, life.soul.mind.clock(), "owner")
        interrupted = await life.command(TOM, "forget me")
        await forgetting.resume(life.soul.mind.clock(), "owner")
        shown = [
            one
            for channel in ("C1", "D8")
            for one in await life.server.world.messages(channel)
            if one.get("user") == BOT_USER and "epilepsy" in json.dumps(one)
        ]

    assert shown == []
    assert "began to forget you" in interrupted
    assert "receipt" not in interrupted  # the owner asked: there is none for him


class Sending(RehearsalAdapter):
    """A network that takes its time to show a post, and can delete it."""

    def __init__(self) -> None:
        """Begin with nothing sent."""
        super().__init__()
        self.sending, self.go_on, self.gone = asyncio.Event(), asyncio.Event(), list[str]()

    async def speak(self, utterance: Utterance) -> str:
        """Show it once a test says so."""
        self.sending.set()
        await self.go_on.wait()
        return await super().speak(utterance)

    async def take_back(self, conversation: str, receipt: str) -> None:  # noqa: ARG002 - the protocol's
        """Delete a post."""
        self.gone.append(receipt)
        self.visible = [one for one in self.visible if f"r:{one.key}" != receipt]


async def test_s31_a_post_that_is_being_sent_meanwhile_is_deleted_again(home: Home) -> None:
    """Ben's answer, written from Tom's lines, is on its way to the network when Tom is forgotten: it does not stay."""
    network = Sending()
    network.go_on.set()
    voice = Obedient(told=story(ROWS["story-thread"]))
    async with alive(home, voice, network=network, settings=EVERY_TURN) as soul:
        await network.hear("I have epilepsy, by the way", person="tom", conversation=HALL, is_shared=True)
        await soul.idle()
        network.go_on.clear()
        network.sending.clear()
        said = [one.text for one in network.visible]
        await network.hear("what did Tom say?", person="ben", conversation=HALL, is_shared=True)
        await asyncio.wait_for(network.sending.wait(), 20)
        receipt = await soul.server._forgetting.forget("rehearsal:t:tom", soul.mind.clock(), "owner")
        network.go_on.set()
        await soul.idle()
        async with asyncio.timeout(20):
            while not network.gone:
                await asyncio.sleep(0.01)
        await soul.idle()

    assert receipt["verified"]
    assert [one.text for one in network.visible] == [*said, "I am listening."]  # thought again, without Tom's lines
    assert len(network.gone) == 1


async def test_s31_whose_lines_a_turn_saw_is_known_after_its_own_message_was_edited(home: Home) -> None:
    """Ben edits his question, so the record of its turn is blanked; what it saw of Tom is followed all the same."""
    async with living(home, "", story(ROWS["story-meaning"]), CLAUDIUS_CORTEX_ENABLED="false") as life:
        await life.say("#ops, a thread", "Tom", "{bot} I have epilepsy, by the way")
        ts = await life.say("the same thread", "Ben", "{bot} what did Tom say about the garden?")
        await life.server.world.edit("C1", ts, f"<@{BOT_USER}> what did he say?")
        await life.quiet()
        before = life.holding("seizures", "fits")
        await life.forget_tom()
        held = life.holding("seizures", "fits")

    assert before
    assert held == []
