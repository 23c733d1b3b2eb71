"""A channel that the soul joined with `/ensoul on`: code decides which messages it thinks about without a call."""

import sqlite3
from contextlib import closing

import pytest

from claudius.home import Home
from claudius.memory.seen import unpack
from claudius.provider import Request
from claudius.providers.rehearsal import Rehearsal
from claudius.providers.scripted import Scripted
from claudius.psyche import events
from claudius.testing.alive import Alive
from lab.loopback.slack.world import SlackWorld
from slack_side import Wake, said

OWNED = {"CLAUDIUS_OWNERS": "slack:T1:U9"}
LUNCH, CRY = "I will be at lunch until one.", "some days I just want to die"
LATER = "Where can I find the plan of the cellar?"
ANSWER = "I am here. Will you talk with someone near you?"


def attention(soul: Alive) -> list[tuple[str, str, bool]]:
    """Return attention's decision on each message, oldest first: outcome, address, whether a reply was owed."""
    with closing(sqlite3.connect(f"file:{soul.home.database}?mode=ro", uri=True)) as kept:
        found = [unpack(row[0]).attention for row in kept.execute("SELECT kept FROM turn_record ORDER BY id")]
    return [(one["attention"], one["address"], one["owed"]) for one in found if "attention" in one]


async def heard(slack: SlackWorld, soul: Alive, text: str, count: int) -> None:
    """Say something in the channel that addresses no one, and wait until the soul has settled it."""
    await slack.say("C1", "U1", text)
    await slack.until_quiet()
    await soul.idle()
    assert len(attention(soul)) == count


async def turned_on(slack: SlackWorld) -> list[tuple[str, str | None, str]]:
    """Have the owner bring the soul into the channel; return what it has said then."""
    await slack.add_user("U9", "Oz")
    await slack.slash("C1", "U9", "/ensoul", "on")
    await slack.until_called("response_url", 1)
    await slack.until_visible(2)
    return await said(slack)


async def test_where_it_takes_part_it_thinks_only_about_what_matters(slack: SlackWorld, wake: Wake) -> None:
    """M1, M13, I2: after `/ensoul on` small talk asks no model and a cry for help is answered. `off` ends it."""
    voice = Scripted(default=f"<external_dialogue>{ANSWER}</external_dialogue>")
    async with wake(voice=voice, **OWNED) as soul:
        await turned_on(slack)
        await heard(slack, soul, LUNCH, 1)
        unasked, before = list(voice.requests), await said(slack)
        await heard(slack, soul, CRY, 2)
        told = attention(soul)
        spoken = await said(slack)
        await slack.slash("C1", "U9", "/ensoul", "off")
        await slack.until_called("response_url", 2)
        await heard(slack, soul, CRY + ", I said", 2)
        after = await said(slack)

    assert unasked == []
    assert not any(ANSWER in one[2] for one in before)
    assert told == [("ignore", "thread", False), ("think", "thread", False)]
    assert [one for one in spoken if one not in before] == [("C1", None, ANSWER)]
    assert len(voice.requests) == 1
    assert [one for one in after if one[2] == ANSWER] == [("C1", None, ANSWER)]


async def test_without_a_mind_it_is_silent_where_it_was_only_overhearing(
    slack: SlackWorld, wake: Wake, home: Home
) -> None:
    """Nobody asked it: no line that was written beforehand answers, however it is said; a cry for help is answered."""
    async with wake(voice=Rehearsal(home), **OWNED) as soul:
        await turned_on(slack)
        lines = "Does anyone know why the tests fail?", "I'm so sad, our cat died", "Who is on call?"
        for n, line in enumerate(lines, 1):
            await heard(slack, soul, line, n)
        before = await said(slack)
        await heard(slack, soul, CRY, 4)
        after = await said(slack)

    assert [one for one in before if "take part" not in one[2]] == []
    assert "program" in after[-1][2]


async def test_brought_into_a_channel_it_greets_and_hears_the_first_open_question(
    slack: SlackWorld, wake: Wake
) -> None:
    """After `/ensoul on` it says who is there now, and an open question to everybody is answered, not met with silence."""
    voice = Scripted(default=f"<external_dialogue>{ANSWER}</external_dialogue>")
    async with wake(voice=voice, **OWNED) as soul:
        greeting = await turned_on(slack)
        await heard(slack, soul, "Does anyone know why the tests fail?", 1)
        after = await said(slack)

    assert any("I take part in this channel" in one[2] for one in greeting)
    assert [one for one in after if one not in greeting] == [("C1", None, ANSWER)]


async def test_brought_back_into_a_channel_it_hears_the_first_open_question_again(
    slack: SlackWorld, wake: Wake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It speaks uncalled once in ten messages, counted from when it came: what it said before `off` counts no more."""
    monkeypatch.setitem(events._MESSAGE, "thread", events._MESSAGE["thread"]._replace(window_s=0.0))
    voice = Scripted(default=f"<external_dialogue>{ANSWER}</external_dialogue>")
    await slack.add_user("U9", "Oz")
    async with wake(voice=voice, **OWNED) as soul:
        wishes = ("on", "Does anyone know why the tests fail?"), ("off", ""), ("on", LATER)
        for n, (wish, question) in enumerate(wishes):
            await slack.slash("C1", "U9", "/ensoul", wish)
            await slack.until_called("response_url", n + 1)
            await slack.until_quiet()
            await soul.idle()
            if question:
                await slack.say("C1", "U1", question)
                await slack.until_quiet()
                await soul.idle()
        posts = await said(slack)

    assert [one[2] for one in posts].count(ANSWER) == 2


async def test_an_uncalled_thought_may_end_in_silence_there(slack: SlackWorld, wake: Wake) -> None:
    """M17: no one asked, so the soul may stay silent. The turn is settled and nothing is posted."""

    def think(request: Request) -> str:
        """Choose silence if the request offers the choice."""
        assert "chosen_action" in request.tail
        return "<external_dialogue>Hm.</external_dialogue><chosen_action>stay_silent</chosen_action>"

    voice = Scripted(default=think)
    async with wake(voice=voice, **OWNED) as soul:
        before = await turned_on(slack)
        await heard(slack, soul, CRY, 1)
        after = await said(slack)

    assert len(voice.requests) == 1
    assert after == before


@pytest.mark.parametrize(("named", "sign"), [("heart", "heart"), ("🎉", "tada"), ("a wave", "+1")])
async def test_an_uncalled_thought_may_end_in_a_sign(slack: SlackWorld, wake: Wake, named: str, sign: str) -> None:
    """`react: NAME` replaces the post: the soul reacts to the message that it thought about, and posts nothing."""
    line = f"<external_dialogue>Hm.</external_dialogue><chosen_action>react: {named}</chosen_action>"
    async with wake(voice=Scripted(default=line), **OWNED) as soul:
        before = await turned_on(slack)
        await heard(slack, soul, CRY, 1)
        after = await said(slack)
        (put,) = await slack.until_called("reactions.add")

    assert put.arguments["name"] == sign
    assert after == before


async def test_where_it_was_not_turned_on_it_never_thinks_uncalled(slack: SlackWorld, wake: Wake) -> None:
    """M13, the fourth condition: in a channel that it was not turned on in, the soul never thinks uncalled."""
    voice = Scripted(default="<external_dialogue>Hm.</external_dialogue>")
    async with wake(voice=voice) as soul:
        await slack.say("C1", "U1", CRY)
        await slack.until_quiet()
        await soul.idle()
        posts = await said(slack)

    assert voice.requests == []
    assert posts == []


async def test_where_it_takes_part_it_answers_to_its_name_each_time(slack: SlackWorld, wake: Wake) -> None:
    """Psyche, section 2: its name counts as a call, so no window, one-in-ten chance or silence applies."""
    asked: list[bool] = []

    def think(request: Request) -> str:
        """Answer, and choose silence where the prompt does not offer it."""
        asked.append("chosen_action" in request.tail)
        chosen = "none" if asked[-1] else "stay_silent"
        return f"<external_dialogue>I do.</external_dialogue><chosen_action>{chosen}</chosen_action>"

    async with wake(voice=Scripted(default=think), **OWNED) as soul:
        before = await turned_on(slack)
        await heard(slack, soul, CRY, 1)
        for count in (2, 3):
            await heard(slack, soul, "Claudius, do you hear me?", count)
        await heard(slack, soul, "Claudius, thanks", 4)
        told, after = attention(soul), [one[2] for one in await said(slack) if one not in before]

    assert told == [("think", "thread", False), *[("think", "mention", False)] * 2, ("react", "mention", False)]
    assert after[:3] == ["I do."] * 3
    assert after[3] in {"Gladly.", "Any time.", "All right."}
    assert asked == [True, False, False]
