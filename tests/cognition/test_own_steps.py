"""A step of the owner's own without Python: asked in the ordinary turn, private, counted, gated, checked (doors §1)."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from claudius.cognition.processes import check_process, find
from claudius.cognition.processes.shipped import MAIN_PROCESS
from claudius.cognition.reply.tags import NAMES
from claudius.cognition.steps import STEPS, names_of
from claudius.compose import provider, step_voices
from claudius.config.load import load
from claudius.errors import BadConfiguration
from claudius.home import Home, shipped
from claudius.providers.scripted import Scripted
from claudius.reports.conversations import explained
from claudius.reports.soul import checked, current
from claudius.soul import SoulSource
from claudius.testing.alive import alive
from minds import by_tag, say, standing, wanted

RAIN = "Rain hangs over the seventh stone by the mill, and that is for nobody else to know or to repeat."


def own(home: Home, name: str, head: str = 'value = "line"', text: str = "In $tag: how it is.") -> Path:
    """Write a step of the owner's own."""
    path = home.soul / "steps" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"+++\n{head}\n+++\n{text.replace('$tag', f'<{name}>')}\n")
    return path


def process(home: Home, steps: str, name: str = "main_process", head: str = "") -> Path:
    """Write a process text that asks these steps."""
    path = home.soul / "processes" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"+++\nsteps = [{steps}]\n{head}\n+++\nTalk.\n")
    return path


@pytest.mark.parametrize("mode", ["fused", "split"])
async def test_d2_an_own_step_of_main_process_is_asked_and_kept_private(home: Home, mode: str) -> None:
    """It is asked where it is listed; its answer is a thought by its name, which no reply may repeat."""
    own(home, "weather")
    process(home, '"*"', "greeting", head='after = "main_process"')
    process(home, '"internal_monologue", "weather", "external_dialogue"')
    voice = Scripted(default=by_tag(weather=RAIN))

    async with alive(home, voice, settings={"CLAUDIUS_PIPELINE_MODE": mode}) as soul:
        await say(soul, "Hello.", "And now?")
        voice.default = by_tag(weather=RAIN, external_dialogue=f"It is so: {RAIN}")
        before, said = len(voice.requests), await say(soul, "Tell me.")
        asked = [tag for request in voice.requests[before:] for tag in wanted(request)]
        entries = standing(soul)["entries"]
    why = await asyncio.to_thread(explained, home, entries[-1]["turn"])

    assert asked[:5] == ["internal_monologue", "weather", "appraisal", "acts", "external_dialogue"]
    assert [one["content"] for one in entries if one["verb"] == "noted weather"] == [RAIN, RAIN]
    assert [one["content"] for one in why["thoughts"] if one["step"] == "weather"] == [RAIN]
    assert f"<weather>{RAIN}</weather>" in "".join([one.content for one in voice.requests[before].history])
    assert [text for text in said if "seventh stone" in text] == []


async def test_d2_a_true_answer_opens_another_step_and_every_counts(home: Home) -> None:
    """`after` asks a step under its check; what is written without a true one is not kept; `every` counts turns."""
    own(home, "hurried", 'value = "bool"\nevery = 2')
    own(home, "short_cut", 'after = "hurried"')
    process(home, '"*", "short_cut", "hurried"')
    process(home, '"*"', "greeting", head='after = "main_process"')
    truth = "true"
    voice = Scripted(default=by_tag(hurried=lambda _: truth, short_cut="By the mill."))

    async with alive(home, voice) as soul:
        await say(soul, "One.", "Two.", "Three.")
        truth = "false"
        await say(soul, "Four.")
        entries = standing(soul)["entries"]

    orders = [[tag for tag in wanted(one) if tag not in STEPS] for one in voice.requests]
    assert orders == [[], ["hurried", "short_cut"], [], ["hurried", "short_cut"]]
    assert "if true: short_cut" in voice.requests[1].tail
    noted = [(one["verb"], one["content"]) for one in entries if one["verb"] and "noted" in one["verb"]]
    assert noted == [("noted hurried", "true"), ("noted short cut", "By the mill."), ("noted hurried", "false")]


async def test_a_process_goes_where_an_own_step_sends_it(home: Home) -> None:
    """A table of transitions reads its answer; `*` stands for the shipped steps, and keeps what else is shipped."""
    own(home, "hurried", 'value = "bool"')
    process(home, '"*", "hurried"', "greeting", head="[transitions.hurried]\ntrue = 'deep_work'")
    process(home, '"*", "hurried"')

    async with alive(home, Scripted(default=by_tag(hurried="Yes."))) as soul:
        await say(soul, "Quick.")
        process_now = standing(soul)["process"]
        main = find("main_process", soul.mind.soul())

    assert process_now == "deep_work"
    assert main is not None
    assert (main.next, main.steps[-2:]) == (("frustrated", "deep_work", "problem_solving"), ("assess_peer", "hurried"))


LISTED = '"internal_monologue", "weather", "external_dialogue"'
FAULTS = {
    "missing": (None, LISTED, "there is no step 'weather'"),
    "a tag of ours": ('tag = "acts"', LISTED, "tag is 'acts'"),
    "a value for functions": ('tag = "weather"\nvalue = "markdown"', LISTED, "only a function can ask it"),
    "slots": ('tag = "weather"\nslots = ["when"]', LISTED, "only a function can ask it"),
    "after no check": ('tag = "weather"\nafter = "acts"', LISTED, "'acts' is no step whose value is bool"),
    "after an unasked one": ('tag = "weather"\nafter = "mental_query"', LISTED, "does not ask 'mental_query'"),
    "after itself": (
        'tag = "weather"\nvalue = "bool"\nafter = "weather"',
        LISTED,
        "waits for itself: weather → weather",
    ),
    "in a circle": ('tag = "weather"\nvalue = "bool"\nafter = "hot"', f"{LISTED}, 'hot'", "weather → hot → weather"),
    "never": ('tag = "weather"\nevery = 0', LISTED, "its head"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_one_line_and_the_shipped_process_runs_on(home: Home, fault: str) -> None:
    """A missing file, a tag of ours, a value that only a function reads: `soul check` says so once."""
    head, steps, detail = FAULTS[fault]
    if head:
        own(home, "weather").write_text(f"+++\n{head}\n+++\nHow is it?\n")
    if "hot" in steps:
        own(home, "hot", 'value = "bool"\nafter = "weather"')
    process(home, steps)

    problems = [one["detail"] for one in checked(home)["problems"]]
    soul = SoulSource(home.soul, shipped("soul"), STEPS, judge=check_process).current()

    assert len(problems) == 1
    assert detail in problems[0]
    assert (found := find("main_process", soul))
    assert (found.steps, found.next) == (MAIN_PROCESS.steps, MAIN_PROCESS.next)


@pytest.mark.parametrize("name", ["soulstatecheck", "think", "code", "marquee", "dir", "answer", "night_thought"])
def test_a_name_that_a_reply_may_hold_already_is_refused(home: Home, name: str) -> None:
    """A tag of ours, one that models write by themselves, HTML: speech would lose what stands in it, or say it."""
    own(home, name)
    process(home, f'"*", "{name}"')

    problems = [one["detail"] for one in checked(home)["problems"]]

    assert problems == [f"its tag is ours, HTML's or a model's own, or no tag: {name!r}"]
    assert names_of(SoulSource(home.soul, shipped("soul"), STEPS).current()) is NAMES


WORDS = {"Your todo list.": False, "Your to_do list.": True, "[Weather](https://example.com) and weather.": False,
    "Weather: dry.": True, "Hot. &lt;weather&gt;dry": True, '<weather is="dry"/>': True, "dry[/weather]": True}  # fmt: skip


@pytest.mark.parametrize("text", WORDS)
async def test_d2_a_name_that_is_a_word_is_left_to_speech_and_guarded_as_a_tag(home: Home, text: str) -> None:
    """Of `to_do` no `todo` is a tag; `weather` is one between the marks of any tag, and before a line's colon."""
    own(home, "to_do")
    own(home, "weather")

    async with alive(home, Scripted([text, "<external_dialogue>So.</external_dialogue>"])) as soul:
        said = await say(soul, "What is there?")

    assert said == ["So." if WORDS[text] else text]


def test_two_names_that_look_alike_are_both_refused(home: Home) -> None:
    """`daymood` and `day_mood` compare equal in a reply: `soul check` says so, and no turn fails."""
    for name in ("daymood", "day_mood"):
        own(home, name)
    process(home, '"*", "daymood", "day_mood"')

    soul = SoulSource(home.soul, shipped("soul"), STEPS).current()

    assert [one["detail"] for one in checked(home)["problems"]] == [
        "its tag looks like that of steps/day_mood.md: rename one"
    ]
    assert {"daymood", "day_mood"} <= soul.steps.keys()
    assert names_of(soul) is NAMES


def test_pipeline_steps_may_send_it_to_another_model(home: Home) -> None:
    """A step of the owner's own is a step that `pipeline.steps` may name."""
    own(home, "weather")
    loaded = load(home, {"CLAUDIUS_PIPELINE_STEPS": "weather=scripted/small", "CLAUDIUS_SCRIPTED_FILE": "/dev/null"})

    voices = step_voices(loaded, Scripted(), partial(provider, home=home), current(home).steps)

    assert voices["weather"].model == "small"
    with pytest.raises(BadConfiguration, match="does not name a step"):
        step_voices(loaded, Scripted(), partial(provider, home=home), STEPS)
