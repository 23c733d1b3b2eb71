"""A daimon aloud: one line under its own name after the soul's reply, only where the owner allows it."""

from typing import Any

import pytest

from claudius.home import Home
from claudius.perception import Perception
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import OWNER, Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from minds import Clock

SPEAKS = {"CLAUDIUS_KOTHAR_ENABLED": "1", "CLAUDIUS_KOTHAR_MODE": "speak", "CLAUDIUS_OWNERS": OWNER}
THOUGHT = "S3-canary: they come because the hinge was never meant to carry a door of that weight, and they know it."
REPLY = f"<internal_monologue>{THOUGHT}</internal_monologue><external_dialogue>So it is.</external_dialogue>"
DM = "rehearsal:t:dm-owner:"


def voice(aloud: str = "The hinge squeaks.") -> Scripted:
    """Return a model that answers as the soul, and says one line when asked in a daimon's name."""
    return Scripted(default=lambda request: aloud if request.purpose == "whisper" else REPLY)


def asked(mouth: Scripted) -> list[Request]:
    """Return the requests in a daimon's name."""
    return [request for request in mouth.requests if request.purpose == "whisper"]


class Answering(RehearsalAdapter):
    """An in-memory network that shows people the answers to their commands."""

    def __init__(self) -> None:
        """Create it without any answer."""
        super().__init__()
        self.answered: list[str] = []

    async def answer(self, _: Perception, text: str) -> None:
        """Show one answer."""
        self.answered.append(text)


async def say(soul: Alive, text: str, lines: int = 2, person: str = "owner") -> list[str]:
    """Say a line and wait for this many answers. Returns everything that was said."""
    seen = len(soul.network.visible)
    await soul.network.hear(text, person=person)
    await soul.until_said(seen + lines)
    return [one.text for one in soul.network.visible]


async def test_it_speaks_once_after_the_reply_and_the_soul_has_heard_it(home: Home) -> None:
    """It says one signed line a turn, kept as its own entry.

    The next prompt holds it as another's words, and `why` too.
    """
    mouth = voice()
    async with alive(home, mouth, settings=SPEAKS) as soul:
        said = await say(soul, "Look at the door.")
        said = await say(soul, "And now?")
        kept = soul.records().conversation(DM)

    assert said == ["So it is.", "Kothar: The hinge squeaks."] * 2
    assert [one["entry_type"] for one in kept["entries"]].count("daimonSpeech") == 2
    turns = [request for request in mouth.requests if request.purpose == "turn"]
    assert '{"kind":"daimon","from":"Kothar","text":"The hinge squeaks."}' in "".join(
        line.content for line in turns[1].history if line.role == "user"
    )


async def test_it_is_shown_what_was_said_aloud_there_and_no_thought(home: Home) -> None:
    """It sees its own character and the fenced lines of this conversation, and nothing that was only thought."""
    mouth = voice()
    async with alive(home, mouth, settings=SPEAKS) as soul:
        await say(soul, "Look at the door.")

    (request,) = asked(mouth)
    assert "You are Kothar" in request.system
    assert "Look at the door." in request.tail
    assert "So it is." in request.tail
    assert "S3-canary" not in request.tail + request.system


@pytest.mark.parametrize(
    "line",
    ["-", "<external_dialogue>", THOUGHT, "key sk-ant-abcdefghijklmnop"],
    ids=["silence", "a broken tag", "a private thought", "a secret"],
)
async def test_what_may_not_be_said_is_not_said(home: Home, line: str) -> None:
    """The soul's own parser and gate apply. What they refuse becomes silence, not a fallback line."""
    async with alive(home, voice(line), settings=SPEAKS) as soul:
        said = await say(soul, "Look.", 1)

    assert said == ["So it is."]


async def test_it_is_heard_six_times_an_hour_in_a_conversation(home: Home) -> None:
    """The seventh line of an hour is not asked for. After the hour it speaks again."""
    mouth, clock = voice(), Clock()
    async with alive(home, mouth, settings=SPEAKS, clock=clock) as soul:
        for _ in range(6):
            await say(soul, "Go on.")
        await say(soul, "Go on.", 1)
        silent = len(asked(mouth))
        clock.forward(hours=1)
        await say(soul, "Go on.")

    assert silent == 6
    assert len(asked(mouth)) == 7


@pytest.mark.parametrize(
    ("settings", "person"),
    [
        (SPEAKS | {"CLAUDIUS_KOTHAR_MODE": "whisper"}, "owner"),
        (SPEAKS | {"CLAUDIUS_KOTHAR_MODE": "off"}, "owner"),
        (SPEAKS | {"CLAUDIUS_KOTHAR_ENABLED": "0"}, "owner"),
        (SPEAKS, "ben"),
    ],
    ids=["whisper", "off", "not on", "another's direct message"],
)
async def test_it_is_not_asked_where_it_may_not_be_heard(home: Home, settings: dict[str, str], person: str) -> None:
    """It speaks only where the owner allows it, and an outside program does not see another's direct message."""
    mouth = voice()
    async with alive(home, mouth, settings=settings) as soul:
        await say(soul, "Look.", 1, person=person)

    assert asked(mouth) == []


async def test_its_mode_in_one_conversation_is_the_owners_word(home: Home) -> None:
    """`!kothar` by the owner sets it there until changed, and anybody else is told who may set it."""
    network: Any = Answering()
    async with alive(home, voice(), settings=SPEAKS | {"CLAUDIUS_KOTHAR_MODE": "whisper"}, network=network) as soul:
        await soul.network.hear("!kothar both", person="ben")
        await soul.network.hear("!kothar both", person="owner")
        await soul.idle()
        there = soul.mind.store.whispers.mode_of("kothar", DM, "whisper")
        elsewhere = soul.mind.store.whispers.mode_of("kothar", "rehearsal:t:dm-ben:", "whisper")
        said = await say(soul, "Look.")

    assert (there, elsewhere) == ("both", "whisper")
    assert said == ["So it is.", "Kothar: The hinge squeaks."]
    assert any("Only an owner" in text for text in network.answered)
    assert any("speaks after me" in text for text in network.answered)


async def test_a_daimon_that_fails_costs_the_reply_nothing(home: Home) -> None:
    """If its model is down the reply stands, nothing is said for it, and the next message is answered."""
    from claudius.errors import Overloaded  # noqa: PLC0415 - beside its only use

    def reply(request: Request) -> str:
        """Fail in a daimon's name, and answer in the soul's."""
        if request.purpose == "whisper":
            raise Overloaded
        return REPLY

    async with alive(home, Scripted(default=reply), settings=SPEAKS) as soul:
        await say(soul, "One.", 1)
        said = await say(soul, "Two.", 1)

    assert said == ["So it is.", "So it is."]
