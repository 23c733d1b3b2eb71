"""R15: a stream is cut anywhere while people watch. What was shown is a prefix of what is finally said."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from claudius.home import Home
from claudius.intent import Utterance
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from driven import reply
from lab.loopback.model import Reply
from voiced import voiced

WORDS = "The first sentence stands. The second is longer, and ends where it should. And the third?"
CANONICAL = "<appraisal>nothing</appraisal>\n<acts>none</acts>\n" + reply(WORDS, user_model_check="false")
BORDERS = [CANONICAL.index(piece) + shift for piece in ("<", ">", "</", WORDS, WORDS[-1]) for shift in (0, 1)]
PLACES = sorted({*BORDERS, len(CANONICAL), *random.Random(15).sample(range(len(CANONICAL)), 50)})  # noqa: S311 - places


@dataclass(slots=True)
class Watching(RehearsalAdapter):
    """An in-memory network whose people watch. It keeps every state in which a message was visible."""

    states: dict[str, list[str]] = field(default_factory=dict)

    async def show(self, utterance: Utterance, text: str) -> None:
        """Update a growing message, and record what is visible now."""
        await super(Watching, self).show(utterance, text)
        shown = next(one.text for one in self.visible if one.key == utterance.key)
        self.states.setdefault(utterance.key, []).append(shown)


async def cut_everywhere(home: Home, places: list[int]) -> None:
    """Cut one reply of many people at each place, and check the rule for each."""
    network = Watching()
    async with voiced(home, default="unused", network=network, CLAUDIUS_PIPELINE_STREAM="rehearsal") as it:
        for number, at in enumerate(places):
            it.model.say(Reply(deltas=tuple(CANONICAL[:at]), fault="no_stop"))
            it.model.default = CANONICAL
            await it.heard(f"hello {number}", person=f"p{number}")
        finished = list(network.visible)

    assert len(finished) == len(places)
    for one in finished:
        assert one.is_complete
        assert WORDS.startswith(one.text.rstrip(" …"))
        assert all(one.text.startswith(state.rstrip()) for state in network.states.get(one.key, []))
    assert any(network.states.values())


async def test_r15_a_cut_stream_is_one_message_that_is_finished(home: Home) -> None:
    """It is cut at every border of a tag and at 50 places between."""
    await cut_everywhere(home, PLACES)


@pytest.mark.nightly
async def test_r15_a_stream_cut_after_each_character(home: Home) -> None:
    """It is cut after each character."""
    await cut_everywhere(home, list(range(1, len(CANONICAL) + 1)))
