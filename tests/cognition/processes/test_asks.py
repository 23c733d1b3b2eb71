"""Conformance 10 to 16: cognitive steps are values, are read strictly and are remembered as text."""

import asyncio
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest
from msgspec import Struct

from claudius.cognition.asks import read, readable, without_prefix
from claudius.cognition.craft import (
    Ask,
    Turn,
    WorkingMemory,
    brainstorm,
    cognitive_step,
    decision,
    external_dialogue,
    instruction,
    internal_monologue,
    mental_process,
    mental_query,
    spoken_dialog,
    summarize,
)
from claudius.errors import Unreadable
from claudius.home import Home
from claudius.intent import Utterance
from claudius.provider import Request
from claudius.providers.scripted import Line, Scripted
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from minds import both, by_tag, minds, say, standing, wanted


class Tone(Enum):
    """The tone of a message."""

    WARM = "warm"
    COLD = "cold"


@dataclass(frozen=True)
class Weather:
    """A value that is an object."""

    sky: str
    wind_kmh: int


class Tide(Struct, frozen=True):
    """A schema that is a struct."""

    level_cm: int


@dataclass(slots=True)
class Watched(RehearsalAdapter):
    """A network that keeps each streamed piece."""

    pieces: list[str] = field(default_factory=list)

    async def show(self, utterance: Utterance, text: str) -> None:
        """Keep a piece."""
        self.pieces.append(text)
        await RehearsalAdapter.show(self, utterance, text)


@cognitive_step("mental_query")
def weather(statement: str = "the weather") -> Ask[Weather]:
    """Ask for an object."""
    return Ask(slots={"statement": statement}, schema=Weather)


async def test_c10_a_step_adds_one_entry_and_no_command(home: Home) -> None:
    """10: when a step returns, its command is not in memory, one entry was added, and the input is unchanged."""
    seen: list[tuple[int, int, bool]] = []

    async def talk(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Think once."""
        after, value = await turn.think(memory, mental_query("the sky is blue"))
        seen.append((len(memory), len(after), value))
        assert not any("weigh by all you know" in entry.content for entry in after if entry.region != "core")
        turn.say("Yes.")
        return after

    async with minds(home, Scripted(default=by_tag(mental_query="true")), **both(talk)) as soul:
        await say(soul, "Is it?")
        entries = standing(soul)["entries"]

    assert [after - before for before, after, _ in seen] == [1]
    assert seen[0][2] is True
    assert [entry["entry_type"] for entry in entries] == ["userMessage", "mentalQuery", "externalDialog"]
    assert entries[1]["content"] == "Claudius judged whether the sky is blue: true"


async def test_c11_an_unreadable_value_is_asked_again_once_with_the_reason(home: Home) -> None:
    """11: a JSON reply that does not validate is asked again with the reason. A second failure is `Unreadable`."""
    caught: list[str] = []

    async def talk(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Ask for an object, and report the result."""
        try:
            memory, value = await turn.think(memory, weather())
            turn.say(f"{value.sky} {value.wind_kmh}")
        except Unreadable as error:
            caught.append(error.detail)
            turn.say("unreadable")
        return memory

    bad, good = '<mental_query>{"sky": 3}</mental_query>', '<mental_query>{"sky": "grey", "wind_kmh": 4}</mental_query>'
    voice = Scripted([bad, good, bad, "no json at all"])
    async with minds(home, voice, **both(talk)) as soul:
        said = await say(soul, "one", "two")

    assert said == ["grey 4", "unreadable"]
    assert len(voice.requests) == 4
    assert "could not be used" in voice.requests[1].tail
    assert "got" in voice.requests[1].tail.partition("could not be used")[2]
    assert voice.requests[0].system == voice.requests[1].system
    assert len(caught) == 1


async def test_c11_a_fused_call_asks_again_for_the_sections_that_failed_alone(home: Home) -> None:
    """11: of several sections in one call, only the unreadable one is asked again."""

    async def talk(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Think three things at once."""
        memory, (_, truth, line) = await turn.think(
            memory, internal_monologue(), mental_query("it rains"), external_dialogue()
        )
        turn.say(f"{line} ({truth})")
        return memory

    first = by_tag(mental_query="perhaps", external_dialogue="Look outside.")
    voice = Scripted([first, by_tag(mental_query="true")])
    async with minds(home, voice, **both(talk)) as soul:
        said = await say(soul, "Does it rain?")

    assert said == ["Look outside. (True)"]
    assert [wanted(request) for request in voice.requests] == [
        ["internal_monologue", "mental_query", "external_dialogue"],
        ["mental_query"],
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "true"),
        (Tone.WARM, "warm"),
        (["a", "b"], "a, b"),
        (Weather("grey", 4), "sky: grey; wind kmh: 4"),
        (Tide(12), "level cm: 12"),
        ({"a": None}, "a: nothing"),
        ([], "nothing"),
    ],
    ids=str,
)
def test_c12_what_is_remembered_is_readable(value: object, words: str) -> None:
    """12 ✗: a schema step without `remember` is remembered as text, never as an object's repr."""
    assert readable(value) == words


@pytest.mark.parametrize(
    ("name", "text", "left"),
    [
        ("Claudius", "Claudius said: Hello.", "Hello."),
        ("Claudius", "Claudius: Hello.", "Hello."),
        ("Claudius", "As Claudius said: it is late.", "As Claudius said: it is late."),
        ("Claudius", "See https://x.org/Claudius: a page", "See https://x.org/Claudius: a page"),
        ("C(3)", "C(3) said: Hi, C(3): you", "Hi, C(3): you"),
        (".*", "anything said: Hi", "anything said: Hi"),
    ],
)
def test_c13_a_prefix_is_stripped_at_the_start_alone_and_literally(name: str, text: str, left: str) -> None:
    """13 ✗: a name in mid-sentence, a URL or a name like `C(3)` leaves the text unchanged."""
    assert without_prefix(text, name) == left


async def test_c14_c15_a_streamed_reply_equals_its_value_and_flows(home: Home) -> None:
    """14, 15 ✗: the joined pieces equal the final value. Without a prefix only what may be a tag is held back."""
    words = "Well then, the bridge needs three coats of paint, and a dry week."
    values: list[str] = []

    async def talk(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Speak while thinking."""
        memory, line = await turn.speak(memory)
        values.append(str(line))
        return memory

    network = Watched()
    pieces = ["<external_dialogue>", *(words[at : at + 7] for at in range(0, len(words), 7)), "</external_dialogue>"]
    settings = {"CLAUDIUS_PIPELINE_STREAM": "rehearsal"}
    voice = Scripted([Line(deltas=tuple(pieces))])
    async with minds(home, voice, settings=settings, network=network, **both(talk)) as soul:
        said = await say(soul, "How many?")

    shown = network.pieces
    assert "".join(shown) == values[0] == said[0] == words
    assert len(shown) > 3
    held = [len("".join(pieces[1 : n + 2])) - len("".join(shown[: n + 1])) for n in range(len(shown) - 1)]
    assert max(held) <= 80


async def test_c16_a_cancelled_call_is_not_retried(home: Home) -> None:
    """16: a call cancelled while it is asked ends, and no second call is made for it."""

    async def talk(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Give up waiting."""
        asking = asyncio.ensure_future(turn.think(memory, mental_query("this ends")))
        while not voice.requests:
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        turn.say("Never mind.")
        return memory

    voice = Scripted([Line(hang=True)])
    async with minds(home, voice, **both(talk)) as soul:
        said = await say(soul, "m")

    assert said == ["Never mind."]
    assert len(voice.requests) == 1
    assert voice.open == 0


def test_every_schema_is_read_or_refused_with_a_reason() -> None:
    """`str`, `bool`, an `Enum`, `list[str]` and an object have one reader each. Anything else is `Unreadable`."""
    assert read(Ask(schema=Tone), " 'Warm'. ") is Tone.WARM
    assert read(Ask(schema=list[str]), "- a\n2. b\n\n") == ["a", "b"]
    assert read(Ask(schema=list[str]), '```json\n["a"]\n```') == ["a"]
    assert read(Ask(schema=bool), "Yes.") is True
    for schema, text in ((Tone, "hot"), (bool, "perhaps"), (str, "  "), (Weather, "{}")):
        with pytest.raises(Unreadable):
            read(Ask(step="s", schema=schema), text)


async def test_two_queries_in_one_call_are_told_apart(home: Home) -> None:
    """Sections of one tag carry a number, so that each value goes to its ask."""

    async def talk(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Weigh two things at once."""
        memory, (first, second) = await turn.think(memory, mental_query("a"), mental_query("b"))
        turn.say(f"{first} {second}")
        return memory

    def reply(request: Request) -> str:
        """Answer the second question first."""
        assert 'section="2"' in request.tail
        return '<mental_query section="2">true</mental_query><mental_query section="1">false</mental_query>'

    async with minds(home, Scripted(default=reply), **both(talk)) as soul:
        assert await say(soul, "m") == ["False True"]


LIBRARY = [
    (decision(["north quay", "south quay"]), "South Quay.", "south quay"),
    (brainstorm(2), "1. a lamp\n2. a rope", ["a lamp", "a rope"]),
    (summarize(), " They want a boat. ", "They want a boat."),
    (instruction("Name the tide."), "Ebb.", "Ebb."),
]


@pytest.mark.parametrize(("ask", "text", "value"), LIBRARY, ids=lambda one: getattr(one, "step", ""))
async def test_a_step_of_the_library_asks_by_its_text_and_reads_its_value(
    home: Home, ask: Ask[Any], text: str, value: Any
) -> None:
    """Each has a text of its own that names the tag; its value is a plain string or list."""
    found: list[Any] = []

    @mental_process()
    async def main_process(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Think the step, then say something."""
        memory, one = await turn.think(memory, ask)
        found.append(one)
        _, line = await turn.think(memory, spoken_dialog("Briefly."))
        turn.say(line)
        return memory

    voice = Scripted(default=by_tag(mental_query=text))
    async with minds(home, voice, main_process=main_process, greeting=main_process) as soul:
        said = await say(soul, "Hello.")

    assert found == [value]
    assert said == ["So it is."]
    assert f"{ask.step}: " in voice.requests[0].tail
    assert "<mental_query>" in voice.requests[0].tail
    assert "heard and not read" in voice.requests[1].tail
    assert voice.requests[1].tail.index("heard and not read") < voice.requests[1].tail.index('"Briefly."')


@pytest.mark.parametrize(("ask", "text"), [(decision(["a", "b"]), "c"), (brainstorm(3), "one\ntwo")])
def test_a_step_of_the_library_refuses_what_was_not_offered(ask: Ask[Any], text: str) -> None:
    """A choice that was none, and too few ideas, are asked for again."""
    with pytest.raises(Unreadable):
        read(ask, text)
    with pytest.raises(ValueError, match="two choices"):
        decision(["a"])
