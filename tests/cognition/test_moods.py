"""The mood of a conversation and the process that follows it: real turns, one soul, several people."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

import pytest

from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.psyche.bands import mood_of
from claudius.testing.alive import Alive
from minds import SMALL_TALK, Clock, by_tag, minds, say, standing, wanted

EACH_TURN = {"CLAUDIUS_SOUL_STATE_INTERVAL": "1"}
NO_PSYCHE = {"CLAUDIUS_PSYCHE_ENABLED": "0"}
CRUEL = "You are useless and stupid, shut up, I hate you"
KIND = "Thank you, you are brilliant and kind, well done"
BEN = "rehearsal:t:dm-ben:"


def states(lines: Iterable[str | None]) -> Callable[[Request], str]:
    """Answer each check of the soul's state with the next of these changes, and with none after the last."""
    left = iter(lines)

    def reply(request: Request) -> str:
        """Answer by tag."""
        change = next(left, None) if "soul_state_check" in wanted(request) else None
        return by_tag(soul_state_check=str(change is not None).lower(), soul_state_update=change or "")(request)

    return reply


def ran(soul: Alive) -> list[str]:
    """Return the process of each turn, oldest first."""
    with closing(sqlite3.connect(f"file:{soul.home.database}?mode=ro", uri=True)) as kept:
        return [row[0] for row in kept.execute("SELECT process FROM turn ORDER BY record")]


def kept_mood(soul: Alive) -> str | None:
    """Return the mood that the soul state holds."""
    found = soul.records().state().get("emotionalState")
    return str(found["value"]) if found else None


async def walked(soul: Alive, *lines: str) -> list[str]:
    """Say lines one by one. Returns the process after each of them."""
    places = []
    for line in lines:
        await say(soul, line)
        places.append(standing(soul)["process"])
    return places


async def test_small_talk_does_not_lead_to_deep_work(home: Home) -> None:
    """Psyche, section 9: fourteen sentences excite the soul, but it stays in everyday talk and goes on learning."""
    clock, voice = Clock(), Scripted(default=by_tag())
    async with minds(home, voice, clock=clock) as soul:
        for line in SMALL_TALK:
            clock.forward(seconds=5)
            await say(soul, line)
        numbers = soul.records().psyche()[0].numbers
        place, mood = standing(soul)["process"], kept_mood(soul)

    assert numbers
    assert mood_of(numbers) == "even", "aroused by what is new: earlier versions called it focused"
    assert (place, mood) == ("main_process", None)
    assert all("user_model_check" in wanted(request) for request in voice.requests)
    assert ran(soul) == ["greeting", *["main_process"] * 13]


@pytest.mark.parametrize("settings", [{}, NO_PSYCHE], ids=["psyche", "none"])
async def test_a_second_task_is_taken_up_as_the_first_was(home: Home, settings: Mapping[str, str]) -> None:
    """Processes, section 5: each new task enters deep work, whether or not the model repeats that it is focused."""
    changes = ["emotionalState: focused\ncurrentTask: paint the door", "currentTask:", "currentTask: oil the hinge"]
    async with minds(home, Scripted(default=states(changes)), settings=EACH_TURN | settings) as soul:
        places = await walked(soul, "hello", "paint it", "all painted", "now the hinge", "go on")
        mood = kept_mood(soul)
        (shown,) = [line for line in soul.mind.provider.requests[-1].tail.splitlines() if '"soul_state"' in line]  # type: ignore[attr-defined]  # Scripted

    assert places == ["main_process", "deep_work", "main_process", "deep_work", "deep_work"]
    assert mood == "focused"
    assert '"emotionalState":"focused","currentTask":"oil the hinge"' in shown


async def test_the_soul_state_leaves_focus_with_the_task(home: Home) -> None:
    """Psyche, section 9: the kept mood is focused while the task is set, and no longer."""
    clock = Clock()
    changes = ["currentTask: paint the door", None, "currentTask:"]
    async with minds(home, Scripted(default=states(changes)), settings=EACH_TURN, clock=clock) as soul:
        moods = []
        for line in ("hello", "paint it", "go on", "all painted"):
            clock.forward(hours=1)
            await say(soul, line)
            moods.append(kept_mood(soul))

    assert moods == [None, "focused", "focused", "neutral"]


async def test_the_models_own_word_counts_for_ten_minutes(home: Home) -> None:
    """Psyche, section 9: if the model says focused without a task, the soul is so for ten minutes and then not."""
    clock = Clock()
    async with minds(
        home, Scripted(default=states(["emotionalState: focused"])), settings=EACH_TURN, clock=clock
    ) as soul:
        places = await walked(soul, "hello", "think hard")
        clock.forward(minutes=10)
        places += await walked(soul, "go on")
        within = kept_mood(soul)
        clock.forward(seconds=1)
        places += await walked(soul, "and on")
        past_it = kept_mood(soul)

    assert places == ["main_process", "deep_work", "deep_work", "main_process"]
    assert ran(soul) == ["greeting", "main_process", "deep_work", "main_process"]
    assert (within, past_it) == ("focused", "neutral")


async def test_a_task_focuses_only_its_own_conversation(home: Home) -> None:
    """A thread's task focuses that thread; another thread of its channel or a DM does not work on it."""
    one, other = "rehearsal:t:hall:1", "rehearsal:t:hall:2"
    replies = {"paint": "currentTask: paint the door", "soup": None}

    def reply(request: Request) -> str:
        """Set the task when paint is mentioned."""
        change = next(
            (change for word, change in replies.items() if word in request.tail.rpartition('"text"')[2]), None
        )
        return states([change])(request)

    async def tell(soul: Alive, conversation: str, line: str) -> str:
        """Say something in a thread."""
        await say(soul, line, conversation=conversation, is_shared=True)
        return str(standing(soul, conversation)["process"])

    voice = Scripted(default=reply)
    async with minds(home, voice, settings=EACH_TURN) as soul:
        for place in (one, other):
            await tell(soul, place, "hello there")
        entered = await tell(soul, one, "paint the door")
        beside = [await tell(soul, other, f"more soup, {n}") for n in range(2)]
        shown = [request.tail for request in voice.requests[-2:]]
        still = await tell(soul, one, "go on with it")
        await say(soul, "hello", "how is the soup?")
        direct = standing(soul)["process"]

    assert (entered, still) == ("deep_work", "deep_work")
    assert [*beside, direct] == ["main_process"] * 3
    assert not any('"emotionalState":"focused"' in tail for tail in shown)


async def quarrel(soul: Alive) -> None:
    """Have the soul meet two people, and have one of them insult it until it is frustrated there."""
    await say(soul, "Hello, how do you do?", "It rains.", person="ana")
    await say(soul, "Hello, how do you do?", "It rains.", CRUEL, CRUEL, CRUEL, person="ben")
    assert standing(soul, BEN)["process"] == "frustrated"


async def test_a_mood_that_healed_elsewhere_is_left_at_the_next_turn(home: Home) -> None:
    """Processes, section 4: cheered up by a friend, the soul is no longer short with the one it quarrelled with."""
    clock = Clock()
    async with minds(home, Scripted(default=by_tag()), clock=clock) as soul:
        await quarrel(soul)
        for _ in range(6):
            clock.forward(minutes=3)
            await say(soul, KIND, person="ana")
        healed = kept_mood(soul)
        await say(soul, "The bus was late.", person="ben")
        place = standing(soul, BEN)

    assert healed in ("engaged", None, "neutral")
    assert ran(soul)[-1] == "main_process"
    assert (place["process"], place["previous_process"]) == ("main_process", "frustrated")


async def test_a_quarrel_goes_on_where_the_mood_lasts(home: Home) -> None:
    """Processes, section 5: while the soul is hurt, the quarrel's conversation stays short, and no other changes."""
    async with minds(home, Scripted(default=by_tag())) as soul:
        await quarrel(soul)
        await say(soul, "The bus was late.", person="ana")
        await say(soul, "The bus was late.", person="ben")
        friend, foe = standing(soul), standing(soul, BEN)

    assert (friend["process"], foe["process"]) == ("main_process", "frustrated")
    assert ran(soul)[-2:] == ["main_process", "frustrated"]


async def test_an_insult_ends_work_that_has_a_task(home: Home) -> None:
    """A hurt soul is not focused, whatever its task, so the process leaves with the mood."""
    async with minds(home, Scripted(default=states(["currentTask: paint the door"])), settings=EACH_TURN) as soul:
        places = await walked(soul, "hello", "paint it", CRUEL, CRUEL, CRUEL)
        mood = kept_mood(soul)

    assert places[1] == "deep_work"
    assert places[-1] != "deep_work"
    assert mood == "sardonic"


async def test_a_quarrel_elsewhere_ends_no_work(home: Home) -> None:
    """Processes, section 3: one angry thread changes no other, so a friend's task goes on in deep work."""

    def reply(request: Request) -> str:
        """Set a task when paint is mentioned."""
        is_task = "paint" in request.tail.rpartition('"text"')[2]
        return states(["currentTask: paint the door"] if is_task else [])(request)

    async with minds(home, Scripted(default=reply), settings=EACH_TURN) as soul:
        await quarrel(soul)
        await say(soul, "paint the door", person="ana")
        mood = kept_mood(soul)
        entered = standing(soul)["process"]
    other = Home(home.root.parent / "other")
    other.create()
    async with minds(other, Scripted(default=reply), settings=EACH_TURN) as soul:
        await say(soul, "Hello, how do you do?", "paint the door", person="ana")
        at_work = standing(soul)["process"]
        await say(soul, "Hello, how do you do?", "It rains.", CRUEL, CRUEL, CRUEL, person="ben")
        await say(soul, "Go on with it.", person="ana")
        still = standing(soul)["process"]

    assert (mood, entered) == ("sardonic", "main_process"), "a hurt soul is not focused"
    assert (at_work, still) == ("deep_work", "deep_work")
    assert ran(soul)[-1] == "deep_work"


async def open_talk(home: Home, private: str, *lines: str) -> list[str]:
    """Say a line eight times in private, then these in a channel, one each quarter of an hour. Return what ran there."""
    clock, place = Clock(), "rehearsal:t:hall:1"
    async with minds(home, Scripted(default=by_tag()), clock=clock) as soul:
        await say(soul, *[private] * 8)
        for line in lines:
            clock.forward(minutes=15)
            await say(soul, line, conversation=place, is_shared=True, person="ben")
        return ran(soul)[8:]


@pytest.mark.parametrize(
    "lines", [SMALL_TALK, ("Is that wrong?", "That is wrong.", *SMALL_TALK[:3], CRUEL, CRUEL, CRUEL, "ok?")]
)
async def test_a_private_quarrel_moves_no_process_of_a_channel(home: Home, lines: tuple[str, ...]) -> None:
    """S15: what was said in private makes the soul neither short in a channel, nor patient with whom insults it there."""
    calm = Home(home.root.parent / "calm")
    calm.create()

    after_quarrel, after_calm = await open_talk(home, CRUEL, *lines), await open_talk(calm, "It rains.", *lines)

    assert after_quarrel == after_calm
    assert ("frustrated" in after_calm) is (CRUEL in lines)


async def test_what_needs_no_thought_is_answered_in_the_mood(home: Home) -> None:
    """Psyche, section 7: no one who has just insulted the soul is told "Good."; a friend may be."""
    async with minds(home, Scripted(default=by_tag())) as soul:
        await say(soul, "Hello, how do you do?", CRUEL, CRUEL)
        sore = (await say(soul, *["ok"] * 12))[3:]
    other = Home(home.root.parent / "other")
    other.create()
    async with minds(other, Scripted(default=by_tag())) as soul:
        await say(soul, "Hello, how do you do?", *[KIND] * 4)
        glad = (await say(soul, *["ok"] * 12))[5:]

    assert set(sore) == {"All right."}
    assert set(glad) <= {"Gladly.", "Any time."}
    assert len(sore) == len(glad) == 12
