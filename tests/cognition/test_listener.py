"""A message of the clock knows to whom it speaks: what is theirs stands in its prompt, and nothing of anybody else."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from claudius.cortex.asking import JOB
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from living import ROME, Days, felt, lived
from minds import by_tag, heard, say, wanted
from reflecting import answer

ALLERGY, PORTRAIT, SECRET = "I'm allergic to walnuts.", "- Bakes on Sundays.", "Ben's walnuts are in the grey safe."
TALK = (
    "Thank you so much, you are wonderful!",
    "Tomorrow at nine the bus is late again, they say.",
    "What you said about the time was a great help.",
    "I was asked to bring something for the fair.",
)
"""What has the words of a reminder's wording in it, and nothing of the matter."""
REMINDER = "Remind me on Tuesday at 15:30 to order the walnut flour."
ASKS = "Will you send me the walnut recipe?"
PROMISE = "I'll send you the walnut recipe on Tuesday at 15:30."
PLANS = {
    REMINDER: '{"do": "remind", "at": "2026-01-13T15:30", "text": "order the walnut flour"}',
    ASKS: '{"do": "promise", "at": "2026-01-13T15:30", "text": "send you the walnut recipe"}',
}
OVEN = "The walnut oven is broken."
TUESDAY = {"at": "2026-01-13T15:30", "zone": "UTC"}
DOES = {
    ALLERGY: {"do": "know", "kind": "constraint", "text": "Allergic to walnuts", "keys": ["nuts", "cake", "food"]},
    REMINDER: {"do": "remind", "text": "order the walnut flour", **TUESDAY},
    ASKS: {"do": "promise", "text": "send them the walnut recipe", **TUESDAY},
}
"""What a model does at a line of Ana's."""


def spoken(request: Request) -> str:
    """Answer both minds in the sections that are asked for; learn from the first line, and take the last one ill."""
    if request.purpose == JOB:
        told = {"peer_id": "rehearsal:t:ana", "action": "follow_up", "text": "how is the walnut oven"}
        return answer(directives=[told] if "walnut oven" in request.tail else [])
    said = heard(request)[-1] if heard(request) else ""
    learned = {"user_model_check": "true", "user_model_update": PORTRAIT, "model_change_note": "Told of an allergy."}
    answers = {REMINDER: "I'll remind you on Tuesday at 15:30.", ASKS: PROMISE}
    more = {"external_dialogue": answers.get(said, "So it is."), "acts": PLANS.get(said, "none")}
    more |= learned if said == ALLERGY else {}
    more |= {"acts": json.dumps(DOES[said])} if said in DOES else {}
    more |= {"appraisal": "hurtful"} if said in (REMINDER, ASKS, OVEN) else {}
    return by_tag(**more)(request).replace("<user_model_update>", '<user_model_update section="Persona">')


def records(request: Request) -> list[dict[str, Any]]:
    """Return the data records of a prompt's tail."""
    return [json.loads(line) for line in request.tail.splitlines() if line.startswith('{"kind"')]


def remembered(request: Request) -> list[Mapping[str, str]]:
    """Return the lines of memory in a prompt."""
    return [line for one in records(request) if one["kind"] == "memory" for line in one["lines"]]


async def known(days: Days) -> None:
    """Let Ana and Ben be known a week before, each in private, and Ana in a room too."""
    await days.says("owner", "!ensoul on", "room", mentions=True)
    await days.says("ana", "!proactive on")
    await days.says("ana", ALLERGY)
    for line in TALK:
        await days.says("ana", line)
    await days.says("ben", SECRET)
    await days.until(8, "10:00", timedelta(hours=2))


async def says(days: Days, line: str) -> None:
    """Have Ana say it in private, a week after all that."""
    await known(days)
    await days.says("ana", line)


def of_the_clock(home: Home, story: Callable[[Days], Awaitable[object]], sign: str) -> Request:
    """Play a story and the days after it; return the first request that the sign tells from those that words led to."""

    async def whole(days: Days) -> None:
        """Play it all."""
        await story(days)
        await days.until(13, "15:31", timedelta(hours=2))

    settings = {
        "CLAUDIUS_OWNERS": "rehearsal:t:owner",
        "CLAUDIUS_CLOCK_TIMEZONE": "UTC",
        "CLAUDIUS_PSYCHE_PROACTIVE": "1",
        "CLAUDIUS_CORTEX_ENABLED": "1",
    }
    days = lived(home, Scripted(default=spoken), whole, settings)
    return next(one for one in days.voice.requests if sign in one.tail and "external_dialogue" in wanted(one))


KINDS = {
    "a reminder": (REMINDER, "what they asked of you here"),
    "a promise": (ASKS, "what you said you would do here"),
    "a directive": (OVEN, '{"kind":"directive"'),
}


@pytest.mark.parametrize(("line", "sign"), KINDS.values(), ids=KINDS)
def test_it_has_what_a_message_of_theirs_would_have_and_searches_for_its_own_words(
    home: Home, line: str, sign: str
) -> None:
    """The portrait, facts that bear on it, the relation and the person's hour are there; what is about nothing is not."""
    request = of_the_clock(home, lambda days: says(days, line), sign)
    whole = "\n".join([*[one.content for one in request.history], request.tail])
    lines = remembered(request)

    assert PORTRAIT in whole
    assert "Ana was hurtful" in felt(request)["text"]
    assert [one["text"] for one in records(request) if one["kind"] == "known"] == ["f1 Allergic to walnuts"]
    assert [one["text"] for one in lines if "walnut" not in one["text"]] == []
    assert {one["from"] for one in lines} <= {"Ana", "you"}
    assert f"({ROME})." in request.tail
    assert SECRET not in whole


def test_in_a_room_it_knows_nothing_that_was_learned_in_private(home: Home) -> None:
    """What Ana told alone, and what Ben told alone, stays out of the prompt of a reminder that others read."""

    async def in_a_room(days: Days) -> None:
        """Let three talk in a room, one of whom asks to be reminded there."""
        await known(days)
        await days.says("ben", "Good morning.", "room", mentions=True)
        await days.says("cem", "Good morning.", "room", mentions=True)
        await days.says("ana", REMINDER, "room", mentions=True)

    request = of_the_clock(home, in_a_room, KINDS["a reminder"][1])
    whole = "\n".join([*[one.content for one in request.history], request.tail])

    assert "Ana was hurtful" in felt(request)["text"]
    assert PORTRAIT not in whole
    assert "walnuts" not in whole


async def test_of_what_many_others_must_not_have_a_prompt_says_how_much_it_does_not_list(home: Home) -> None:
    """What bears on the question comes first; the rest as there is room, and then the number of those left out."""
    names = [f"p{n}" for n in range(12)]
    must_not = {
        name: f"Must not have {n} grams of {'saffron' if n == 2 else 'anything'} {'x' * 60}"
        for n, name in enumerate(names)
    }

    def learns(request: Request) -> str:
        """Keep what they say as what they must not have."""
        said = heard(request)[-1]
        act = (
            {"do": "know", "kind": "constraint", "text": must_not[said], "keys": ["food"]} if said in must_not else None
        )
        return by_tag(external_dialogue="So it is.", acts=json.dumps(act) if act else "none")(request)

    room = {"conversation": "rehearsal:t:room:", "is_shared": True}
    async with alive(home, voice := Scripted(default=learns)) as soul:
        for name in names:
            await say(soul, name, person=name, **room)
        await say(soul, "Is saffron all right?", person="ana", **room)

    (known,) = [one["text"].split("\n") for one in records(voice.requests[-1]) if one["kind"] == "known"]
    (left,) = re.findall(r"Not listed, of what others here must not have: (\d+) more\.", known[-1])
    assert must_not["p2"] in known[0]
    assert len(known) - 1 + int(left) == len(names)
    assert int(left) > 3
