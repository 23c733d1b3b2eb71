"""What a new talk begins with: an old topic does not head it, and someone's grief quietens the soul's mood."""

import json
from collections.abc import Mapping

import pytest

from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from minds import Clock, by_tag, minds, say, standing

EACH_TURN = {"CLAUDIUS_SOUL_STATE_INTERVAL": "1"}
KIND = "Thank you, you are brilliant and kind, well done"
GRIEF = ("My father died last night.", "I lost my grandmother this morning.", "We broke up and I feel so sad.")


def shown(request: Request, kind: str) -> Mapping[str, str]:
    """Return the record of a kind in a tail; empty if there is none."""
    lines = [json.loads(line) for line in request.tail.splitlines() if line.startswith(f'{{"kind":"{kind}"')]
    return lines[0] if lines else {}


def turns(voice: Scripted) -> list[Request]:
    """Return the requests that asked for a reply."""
    return [one for one in voice.requests if "external_dialogue" in one.tail.partition("\n## ")[0]]


async def test_a_stale_topic_does_not_head_the_next_conversation(home: Home) -> None:
    """A topic stands through its talk, however long, and is gone when the next one begins after a night."""
    topic = by_tag(soul_state_check="true", soul_state_update="currentTopic: larch\ncurrentProject: a boat")
    voice, clock = Scripted(default=topic), Clock()

    async with minds(home, voice, clock=clock, settings=EACH_TURN) as soul:
        await say(soul, "I am thinking about larch for the planks of my boat.")
        for _ in range(4):
            clock.forward(hours=4)
            await say(soul, "The planks are drying in the shed behind the house.")
        clock.forward(days=1)
        await say(soul, "Good morning, how are you today?")

    states = [shown(one, "soul_state") for one in turns(voice)]
    assert [one.get("currentTopic") for one in states] == [None, None, "larch", "larch", "larch", None]
    assert states[-1]["currentProject"] == "a boat"


@pytest.mark.parametrize("news", GRIEF)
async def test_the_mood_answers_other_people_s_grief(home: Home, news: str) -> None:
    """Told of grief the soul is moved, and its next prompts say so, and nothing else of feeling."""
    work = by_tag(soul_state_check="true", soul_state_update="emotionalState: focused\ncurrentTask: the planks")
    voice, clock = Scripted(default=work), Clock()

    async with minds(home, voice, clock=clock, settings=EACH_TURN) as soul:
        for line in (KIND, KIND, "Let us work on the planks now, please.", news, "The funeral is on Friday."):
            clock.forward(minutes=2)
            await say(soul, line)
        after = soul.records().state()

    working, told, later = turns(voice)[-3:]
    assert "moved" not in shown(working, "psyche").get("text", "")
    assert "moved" not in shown(told, "psyche").get("text", ""), "no list of words has read it before the model"
    assert shown(later, "psyche")["text"] == "You are moved, and stay near."
    assert after["emotionalState"]["value"] == "focused", "it works on, and is moved"


async def test_the_mood_moves_on_some_hours_after_the_news(home: Home) -> None:
    """What moved the soul in the morning no longer words its mood, and no process of work was left or entered by it."""
    voice, clock = Scripted(default=by_tag()), Clock()

    async with minds(home, voice, clock=clock) as soul:
        await say(soul, GRIEF[0])
        clock.forward(hours=9)
        await say(soul, "Shall we look at the drawings of the hull again?")
        process = standing(soul)["process"]

    last = turns(voice)[-1]
    assert "moved" not in shown(last, "psyche").get("text", "")
    assert process == "main_process"
