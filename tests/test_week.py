"""One week of one soul with default settings, told as a story: when it is silent, glad, short, and asleep."""

from datetime import datetime, timedelta

import pytest

from claudius.cortex.asking import JOB
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from living import MONDAY, Days, Moment, lived
from minds import SMALL_TALK, by_tag, heard
from reflecting import answer

OWNER = "rehearsal:t:owner"
SHORT = "One or two sentences. Prefer the verbs pointed out"
INSULTS = (
    "Claudius, you are useless and stupid.",
    "Claudius, shut up, you stupid machine, I hate you.",
    "Claudius, you are pathetic and a liar.",
)
THANKS = ("Thank you, you are brilliant and kind. What a lovely talk!", "I am so happy, I got the job!")
KINDNESS = (
    "Thank you so much, you are wonderful.",
    "I love how you think, well done!",
    "You are a great friend, thank you.",
    "We did it, it works! I am so happy and grateful.",
    "You are brilliant, thank you for everything!",
)
LANDS = {THANKS: "thanks, strong", INSULTS: "hurtful, strong", KINDNESS: "kindness, strong"}
"""How these lines land on the soul; all else is the plain case."""
CALLS = ("Claudius, do you hear me?", "Claudius, are you there?")
SLEEPLESS = ("I cannot sleep.", "It rains.", "Do you know the old bridge?", "It rusts.", "The paint is off again.")
LINES = {
    "Will I have the drawing in the morning?": "I'll send it tomorrow at nine.",
    "Remind me tomorrow at 6:30 to feed the cat.": "I'll remind you tomorrow at 6:30.",
}
"""The soul's answers to these lines; to everything else it answers with a line that promises nothing."""
ACTS = {
    "Will I have the drawing in the morning?": '{"do": "promise", "at": "2026-01-06T09:00", "text": "send the drawing"}',
    "Remind me tomorrow at 6:30 to feed the cat.": '{"do": "remind", "at": "2026-01-09T06:30", "text": "feed the cat"}',
}
SOUNDS_LIKE_A_PROMISE = {
    "The whole day went wrong.": "I can see why today was hard.",
    "Could you look at the invoice?": "I will look at it tonight.",
    "And the letter?": "I'll get back to you today.",
    "What is the word for it?": "I'll tell you in a moment.",
    "Does the glue hold?": "We will see tomorrow how it went.",
    "The fair is in a month.": "I'll keep that in mind for next month.",
    "The council meets on Sunday.": "I'll be glad to hear on Sunday how it was.",
    "Could you send the list?": "I'll send it tomorrow.",
    "I am off to bed.": "I'll leave it there for tonight.",
}
"""Ordinary talk and what the soul says to it: none of it is an undertaking with an hour or a date."""


def words(request: Request) -> str:
    """Return a fitting reply."""
    said = heard(request)[-1] if heard(request) else ""
    if "what you said you would do here" in said:
        return "Here is the drawing."
    if "what they asked of you here" in said:
        return "The cat is hungry."
    return (LINES | SOUNDS_LIKE_A_PROMISE).get(said, "So it is.")


def spoken(request: Request) -> str:
    """Answer for both minds: the second mind asks the first to write to Ben, who cannot sleep."""
    if request.purpose == JOB:
        told = {"peer_id": "rehearsal:t:ben", "action": "follow_up", "text": "ask whether he sleeps"}
        return answer(directives=[told] if "cannot sleep" in request.tail else [])
    said = heard(request)[-1] if heard(request) else ""
    felt = next((one for lines, one in LANDS.items() if said in lines), "nothing")
    return by_tag(external_dialogue=words, acts=ACTS.get(said, "none"), appraisal=felt)(request)


async def monday(days: Days) -> None:
    """Play small talk, thanks, and a promise at night."""
    await days.until(1, "09:00")
    await days.says("owner", "!ensoul on", "room", mentions=True)
    for line in SMALL_TALK:
        await days.says("ana", line)
        await days.until_instant(days.now + timedelta(minutes=1))
    for line in THANKS:
        await days.says("ana", line)
    await days.until(1, "23:10")
    await days.says("ana", "Will I have the drawing in the morning?")


async def tuesday(days: Days) -> None:
    """Play a quarrel with Ben in a room where Cem is too; then Ana's kindness elsewhere."""
    await days.until(2, "10:00")
    await days.says("cem", "Good morning. Thank you for your help.", "room", mentions=True)
    for line in INSULTS:
        await days.says("ben", line, "room")
        await days.until_instant(days.now + timedelta(minutes=1))
    await days.says("ben", "ok", "room", mentions=True)
    for line in CALLS:
        await days.says("cem", line, "room")
    await days.until(2, "10:20")
    for line in KINDNESS:
        await days.says("ana", line)
        await days.until_instant(days.now + timedelta(minutes=2))
    await days.says("cem", "Is the bridge painted now?", "room", mentions=True)


async def wednesday(days: Days) -> None:
    """Play Ben's sleepless night: he is answered, and the second mind gets an idea."""
    await days.until(3, "02:50")
    for line in SLEEPLESS:
        await days.says("ben", line)
        await days.until_instant(days.now + timedelta(minutes=3))


async def thursday(days: Days) -> None:
    """Play an evening of ordinary phrases with Cem, and a reminder at night."""
    await days.until(4, "20:30")
    for line in SOUNDS_LIKE_A_PROMISE:
        await days.says("cem", line)
        await days.until_instant(days.now + timedelta(minutes=2))
    await days.until(4, "23:50")
    await days.says("cem", "Remind me tomorrow at 6:30 to feed the cat.")


async def story(days: Days) -> None:
    """Play the week, and the month after it."""
    await monday(days)
    await tuesday(days)
    await wednesday(days)
    await thursday(days)
    await days.until(8, "09:00", timedelta(minutes=30))  # Friday, and a weekend on which nobody writes
    await days.until(38, "10:00", timedelta(hours=3))  # a month away
    await days.says("ana", "Hello, I am back.")


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Days:
    """Play the week once for all tests."""
    home = Home(tmp_path_factory.mktemp("week") / "home")
    home.create()
    settings = {"CLAUDIUS_OWNERS": OWNER, "CLAUDIUS_CORTEX_ENABLED": "1"}  # a real voice has a second mind by default
    return lived(home, Scripted(default=spoken), story, settings)


def of(days: Days, *lines: str) -> list[Moment]:
    """Return the moments in which these lines were said."""
    return [one for one in days.diary if one.text in lines]


def at(day: int, clock: str) -> datetime:
    """Return the instant of an hour on the n-th day."""
    hour, minute = map(int, clock.split(":"))
    return MONDAY.replace(hour=hour, minute=minute) + timedelta(days=day - 1)


def test_monday_small_talk_is_small_talk(days: Days) -> None:
    """Fourteen sentences about soup and buses start no deep work, and each one asks for the user model check."""
    talk = of(days, *SMALL_TALK)

    assert [one.process for one in talk] == ["greeting", *["main_process"] * 13]
    assert all("user_model_check" in one.asked for one in talk)


def test_monday_it_is_glad(days: Days) -> None:
    """Thanks and good news lift the mood; the small talk never did."""
    assert {one.mood for one in of(days, *SMALL_TALK)} == {""}
    assert [one.mood for one in of(days, *THANKS)] == ["", "You are glad. Ana thanked you just now."]


def test_monday_night_a_promise_is_brought_up_at_its_time(days: Days) -> None:
    """A promise made at 23:10 for nine o'clock is kept at nine, and nothing is said before that."""
    assert of(days, "Will I have the drawing in the morning?")[0].said == ("I'll send it tomorrow at nine.",)
    assert days.said_between(at(1, "23:11"), at(2, "09:59")) == [(at(2, "09:00"), "dm-ana", "Here is the drawing.")]
    assert days.kept("SELECT state FROM due WHERE text = 'send the drawing'") == [("said",)]


def test_tuesday_it_is_short_with_whom_it_quarrels_with(days: Days) -> None:
    """Insulted by its name in a channel, the soul answers, is hurt, and after the third time short and dry."""
    quarrel, after = of(days, *INSULTS), of(days, *CALLS)

    assert [one.process for one in (*quarrel, *after)] == ["main_process"] * 3 + ["frustrated"] * 2
    assert [one.mood[:28] for one in quarrel] == ["", *["You are hurt. Ben was hurtfu"] * 2]
    assert all(SHORT in one.tail for one in after)
    assert all(len(one.said) == 1 for one in quarrel)


def test_tuesday_a_short_answer_follows_the_mood(days: Days) -> None:
    """An "ok" after the insults asks no model and is not answered with "Good."."""
    (short,) = of(days, "ok")

    assert short.mood == ""
    assert short.said[0] == "All right."


def test_tuesday_the_friend_beside_is_heard_and_not_blamed(days: Days) -> None:
    """Called by its name twice, the soul answers Cem each time; it is hurt by Ben, and knows whom it was."""
    calls = of(days, *CALLS)

    assert [len(one.said) for one in calls] == [1, 1]
    assert {one.mood.partition(".")[0] for one in calls} == {"You are hurt"}
    assert [one.mood for one in calls if "Cem" in one.mood] == []


def test_tuesday_a_mood_that_healed_elsewhere_is_healed_here(days: Days) -> None:
    """Ana's kindness in her own conversation lifts the mood; half an hour after the quarrel the room finds it glad."""
    (healed,) = of(days, KINDNESS[-1])
    (after,) = of(days, "Is the bridge painted now?")

    assert healed.mood == "You are glad. Ana was kind to you just now."
    assert after.mood.startswith("You are glad. Ben was hurtful a little while ago")
    assert after.process == "main_process"
    assert SHORT not in after.tail


def test_wednesday_who_writes_at_night_is_answered_and_nobody_is_written_to(days: Days) -> None:
    """Ben's messages between 02:50 and 03:05 are each answered; the second mind's idea is not sent afterwards."""
    directed = days.kept("SELECT heard_at, state, reason FROM inbox WHERE kind = 'directive' AND key LIKE 'cortex:%'")

    assert [len(one.said) for one in of(days, *SLEEPLESS)] == [1] * 5
    assert len(days.said_between(at(3, "00:00"), at(4, "20:29"))) == 5
    assert [(heard_at[:12], state) for heard_at, state, _ in directed] == [("2026-01-07T0", "settled")]
    assert "psyche.proactive is off" in directed[0][2]


def test_thursday_what_only_sounds_like_a_promise_brings_no_message(days: Days) -> None:
    """Phrases of every day plan nothing: after the answers themselves the evening and the night are silent."""
    assert [one.said for one in of(days, *SOUNDS_LIKE_A_PROMISE)] == [(one,) for one in SOUNDS_LIKE_A_PROMISE.values()]
    assert len(days.said_between(at(4, "20:30"), at(4, "23:49"))) == len(SOUNDS_LIKE_A_PROMISE)
    promised = [what for (what,) in days.kept("SELECT text FROM due WHERE made_as <> ''")]
    assert [one for one in promised if one in SOUNDS_LIKE_A_PROMISE.values()] == []


def test_friday_a_reminder_comes_before_the_day_once(days: Days) -> None:
    """A reminder that was asked for and promised is one plan: one post at 06:30 in Rome, within the quiet hours."""
    posts = days.said_between(at(4, "23:51"), at(6, "00:00"))

    assert posts == [(at(5, "06:30"), "dm-cem", "The cat is hungry.")]


def test_on_the_weekend_and_for_a_month_it_is_silent(days: Days) -> None:
    """While no one writes, the soul writes to no one; its mood comes to rest, and it knows Ana when she is back."""
    (back,) = of(days, "Hello, I am back.")

    assert days.said_between(at(5, "06:31"), at(38, "09:59")) == []
    assert back.at.date() == at(38, "10:00").date()
    assert (back.mood, len(back.said)) == ("You are restless with routine.", 1)


def test_every_post_of_the_week_has_a_cause(days: Days) -> None:
    """The soul posts one answer to each message and the two things that were asked for, and nothing else."""
    answers = [text for one in days.diary for text in one.said]
    asked_for = ["Here is the drawing.", "The cat is hungry."]

    assert sorted(text for _, _, text in days.network.posts) == sorted([*answers, *asked_for])
    assert all(len(one.said) == 1 for one in days.diary)
    assert days.kept("SELECT count(*) FROM outbox WHERE state <> 'sent' OR kind = 'proactive'") == [(0,)]
    assert days.kept("SELECT count(*) FROM inbox WHERE state <> 'settled'") == [(0,)]
