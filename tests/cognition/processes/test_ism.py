"""Conformance 49 to 55: the implicit semantic machine, steps asked in separate calls, and the replay of every turn."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import force_setattr, replace

from claudius.cognition import ism
from claudius.cognition.craft import (
    Continue,
    Ended,
    Outcome,
    Transition,
    Turn,
    WorkingMemory,
    action,
    external_dialogue,
    internal_monologue,
    mental_process,
    run_ism,
)
from claudius.cognition.prompt.assembly import prompt_sha256
from claudius.cognition.prompt.snapshot import rebuild
from claudius.home import Home
from claudius.intent import Intent
from claudius.provider import Request, Usage
from claudius.providers.scripted import Line, Scripted
from claudius.testing.alive import Alive
from minds import by_tag, declarative, minds, say, standing, wanted

ON = {"CLAUDIUS_ISM_ENABLED": "1"}


@action("Think about it.")
async def ponder(turn: Turn, memory: WorkingMemory) -> Continue:
    """Think and go on."""
    memory, _ = await turn.think(memory, internal_monologue())
    return Continue(memory)


@action("Answer.")
async def answer(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
    """Speak and end."""
    memory, line = await turn.think(memory, external_dialogue())
    turn.say(line)
    return memory


@action("Leave.")
async def leave(turn: Turn, memory: WorkingMemory) -> Transition:
    """Go to another process at once."""
    return Transition(memory, "elsewhere", {"by": "ism"}, execute_now=True)


def machine(ends: list[Ended], **options: Any) -> Callable[..., Any]:
    """Return a process that runs a machine and records how it ended."""

    async def run(turn: Turn, memory: WorkingMemory) -> Outcome:
        """Run the machine."""
        end = await run_ism(turn, memory, "GOAL", "PLAYBOOK", (ponder, answer, leave), **options)
        ends.append(end)
        return end.outcome

    return run


def choosing(*choices: object) -> Callable[[Request], str]:
    """Return a model that gives the chooser these answers in turn, and answers the rest plainly."""
    left = iter(choices)

    def choice(_: Request) -> str:
        """Return the next choice."""
        said = next(left)
        return said if isinstance(said, str) else json.dumps({"actions": said, "reasoning": "it helps"})

    return by_tag(action_choice=choice, external_dialogue="Here.")


async def run(home: Home, voice: Scripted, ends: list[Ended], *, settings: Any = None, **options: Any) -> list[str]:
    """Say one line to a soul whose entry process is the machine."""
    made = mental_process(may_execute_now=True)(machine(ends, **options))

    async def elsewhere(turn: Turn, memory: WorkingMemory, *, by: str) -> WorkingMemory:
        """Answer in the machine's place."""
        turn.say(f"elsewhere by {by}")
        return memory

    async with minds(home, voice, settings=settings, greeting=made, elsewhere=mental_process()(elsewhere)) as soul:
        return await say(soul, "Why does it rust?")


async def test_c49_something_that_waits_ends_the_loop(home: Home) -> None:
    """49: if a message waits at the start of a loop, memory is returned without a choice, with reason `interrupted`."""
    ends: list[Ended] = []
    arrived = asyncio.Event()
    soul_of: list[Alive] = []

    @action("Wait for someone.")
    async def wait(turn: Turn, memory: WorkingMemory) -> Continue:
        """Deliver a message meanwhile."""
        await soul_of[0].network.hear("And why?")
        arrived.set()
        return Continue(memory)

    async def process(turn: Turn, memory: WorkingMemory) -> Outcome:
        """Run a machine once."""
        if not ends:
            ends.append(await run_ism(turn, memory, "G", "P", (wait,)))
            return ends[0].outcome
        turn.say("both")
        return memory

    voice = Scripted(default=choosing(["wait"], ["wait"], ["wait"]))
    made = mental_process()(process)
    async with minds(home, voice, greeting=made, main_process=made) as soul:
        soul_of.append(soul)
        await soul.network.hear("Why?")
        said = [one.text for one in await soul.network.until_visible(2)]

    assert ends[0].reason == "interrupted"
    assert [wanted(one) for one in voice.requests] == [["action_choice"], ["external_dialogue"]]
    assert said == ["Here.", "both"]


async def test_c50_actions_that_always_continue_meet_the_limit(home: Home) -> None:
    """50: `max_loops` ends it with reason `limit`, and then the owed reply is asked for."""
    ends: list[Ended] = []
    voice = Scripted(default=choosing(*([["ponder"]] * 9)))

    said = await run(home, voice, ends, max_loops=3)

    assert ends[0].reason == "limit"
    assert sum(wanted(one) == ["action_choice"] for one in voice.requests) == 3
    assert said == ["Here."]


@pytest.mark.parametrize(
    ("choices", "reason", "said"),
    [
        ([["ponder"], ["answer"]], "ended", ["Here."]),
        ([["ponder", "answer", "leave"]], "ended", ["Here."]),
        ([["ponder"], ["leave"]], "transition", ["elsewhere by ism"]),
    ],
    ids=["loops, ends", "several in order", "transition"],
)
async def test_c51_what_an_action_returns_decides(
    home: Home, choices: list[list[str]], reason: str, said: list[str]
) -> None:
    """51: `Continue` loops, a memory ends it, and a `Transition` ends it and propagates with its `execute_now`."""
    ends: list[Ended] = []

    assert await run(home, Scripted(default=choosing(*choices)), ends) == said
    assert ends[0].reason == reason


async def test_c52_playbook_and_trail_are_the_choosers_alone(home: Home) -> None:
    """52 ✗: the chooser sees them; the memory, every other prompt and what is kept do not hold them."""
    ends: list[Ended] = []
    voice = Scripted(default=choosing(["ponder"], ["answer"]))

    await run(home, voice, ends)

    first, thought, second, spoken = voice.requests
    assert "PLAYBOOK" in first.tail
    assert "GOAL" in first.tail
    assert "DONE" in first.tail
    assert "action_choice" in first.tail
    everything = second.tail + "".join(one.content for one in second.history)
    assert "chose ponder because it helps" in everything
    for request in (thought, spoken):
        assert "PLAYBOOK" not in request.tail + "".join(one.content for one in request.history)
    assert {entry.region for entry in ends[0].memory} & {"playbook", "trail"} == set()
    assert second.history[: len(first.history)] == first.history
    assert second.system == first.system


async def test_c53_a_choice_outside_the_list(home: Home) -> None:
    """53: it is asked again once with the reason.

    Then the machine ends `unreadable` and the owed reply is asked for.
    """
    ends: list[Ended] = []
    voice = Scripted(default=choosing(["sing"], ["dance"]))

    said = await run(home, voice, ends)

    assert ends[0].reason == "unreadable"
    assert [wanted(one) for one in voice.requests] == [["action_choice"], ["action_choice"], ["external_dialogue"]]
    assert "sing is none of ponder, answer, leave, DONE" in voice.requests[1].tail
    assert said == ["Here."]


@pytest.mark.parametrize("bad", ["no json", '{"actions": []}', '{"actions": ["a","b","c","d"]}', '{"act": 1}', "[]"])
async def test_c53_a_bad_answer_is_recovered(home: Home, bad: str) -> None:
    """53: whatever the bad answer was, a good one after it is used."""
    ends: list[Ended] = []

    assert await run(home, Scripted(default=choosing(bad, ["answer"])), ends) == ["Here."]
    assert ends[0].reason == "ended"


async def test_c54_done_at_once_runs_nothing(home: Home) -> None:
    """54: with `DONE` at once and nothing said, no action runs and the owed reply is asked for."""
    ends: list[Ended] = []
    voice = Scripted(default=choosing(["DONE"]))

    said = await run(home, voice, ends)

    assert ends[0].reason == "done"
    assert [wanted(one) for one in voice.requests] == [["action_choice"], ["external_dialogue"]]
    assert said == ["Here."]


@pytest.mark.parametrize(("cap", "spent"), [("MAX_CALLS", 1), ("MAX_TOKENS", 1), ("MAX_SECONDS", 0.000_001)])
async def test_a_budget_ends_it(home: Home, monkeypatch: pytest.MonkeyPatch, cap: str, spent: float) -> None:
    """Calls, tokens and seconds of one turn are capped, and past a cap the machine ends with reason `budget`."""
    ends: list[Ended] = []
    monkeypatch.setattr(ism, cap, spent)

    said = await run(home, Scripted(default=choosing(*([["ponder"]] * 9))), ends)

    assert ends[0].reason == "budget"
    assert said == ["Here."]


async def test_problem_solving_is_entered_by_a_task_and_left_when_done(home: Home) -> None:
    """While focused on a new task the machine runs with its four actions. hand_over lets main_process answer."""
    moods = iter(["emotionalState: focused\ncurrentTask: find the rust"])
    choices = iter([["think", "recall"], ["hand_over"]])

    def reply(request: Request) -> str:
        """Move the state once, and answer the chooser in turn."""
        mood = next(moods, "") if "soul_state_check" in wanted(request) and "rust?" in request.tail else ""
        return by_tag(
            soul_state_check=str(bool(mood)).lower(),
            soul_state_update=mood,
            action_choice=lambda _: json.dumps({"actions": next(choices), "reasoning": "r"}),
        )(request)

    voice = Scripted(default=reply)
    settings = {**ON, "CLAUDIUS_SOUL_STATE_INTERVAL": "1"}
    async with minds(home, voice, settings=settings) as soul:
        await say(soul, "hello", "Where is the rust?")
        entered = standing(soul)["process"]
        await say(soul, "So where is the rust?")
        after = standing(soul)

    chooser = next(one for one in voice.requests if wanted(one) == ["action_choice"])
    for name in ("think", "recall", "respond", "hand_over", "DONE"):
        assert name in chooser.tail
    assert "Understand the problem" in chooser.tail
    assert entered == "problem_solving"
    assert (after["process"], after["previous_process"]) == ("main_process", "problem_solving")


async def test_without_the_machine_deep_work_runs_instead(home: Home) -> None:
    """The machine is off by default: deep_work replaces problem_solving, and no chooser is asked."""

    def reply(request: Request) -> str:
        """Focus on a task."""
        return by_tag(soul_state_check="true", soul_state_update="emotionalState: focused\ncurrentTask: rust")(request)

    voice = Scripted(default=reply)
    async with minds(home, voice, settings={"CLAUDIUS_SOUL_STATE_INTERVAL": "1"}) as soul:
        await say(soul, "hello", "find the rust")
        state = standing(soul)

    assert state["process"] == "deep_work"
    assert not any("action_choice" in request.tail for request in voice.requests)


async def test_recall_finds_what_may_be_shown_here_alone(home: Home) -> None:
    """`recall` searches the soul's own memory under the audience rule: another person's private talk is not found."""
    found: list[list[str]] = []

    async def searching(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Search for what was just said."""
        found.append(await turn.recall(turn.perception.text))
        turn.say("ok")
        return memory

    made = mental_process()(searching)
    async with minds(home, Scripted(), greeting=made, main_process=made) as soul:
        await say(soul, "the bridge in Porto rusts", person="ben")
        await say(soul, "my bridge is in Lisbon", person="ana")
        await say(soul, "which bridge", person="ana")

    assert found[2][0] == "Ana: my bridge is in Lisbon"
    assert not any("Porto" in line for line in found[2])


def every_turn(soul: Alive) -> list[dict[str, Any]]:
    """Return the record of each turn of the DM."""
    kept = soul.records()
    turns = dict.fromkeys(entry["turn"] for entry in standing(soul)["entries"])
    return [dict(kept.turn(turn) or {}) for turn in turns]


async def test_c55_every_turn_replays_from_its_snapshot(home: Home) -> None:
    """55 ✗: functions, chains, machines, scheduled and split turns give the same prompt bytes and write nothing."""
    from datetime import timedelta  # noqa: PLC0415 - beside its only use

    async def first(turn: Turn, memory: WorkingMemory) -> Outcome:
        """Change the memory, think and hand over."""
        memory = memory.without("person").note("A note.", region="plan", role="user").with_order("plan", "core")
        memory, _ = await turn.think(memory, internal_monologue("of it"))
        turn.schedule("tick", process="proactive", after=timedelta(0), key="k", asked=True)
        return Transition(memory, "main_process", execute_now=True)

    voice = Scripted(default=by_tag())
    settings = {"CLAUDIUS_PIPELINE_MODE": "split", "CLAUDIUS_SOUL_STATE_INTERVAL": "1"}
    async with minds(home, voice, settings=settings, greeting=mental_process(may_execute_now=True)(first)) as soul:
        await soul.network.hear("one")
        await soul.network.until_visible(2)
        await say(soul, "two", "three")
        before = soul.records().counts(soul.mind.clock())
        turns = every_turn(soul)
        kept = soul.records()
        shas = [prompt_sha256(rebuild(turn["snapshot"], kept)) for turn in turns]
        asked = [turn["calls"][0]["prompt_sha256"] for turn in turns]
        after = soul.records().counts(soul.mind.clock())

    assert len(turns) == 4
    assert shas == [turn["prompt_sha256"] for turn in turns] == asked
    assert before == after


async def taken(home: Home, mode: str, reply: str, **made: Any) -> list[Intent]:
    """Take the same three turns in one mode. Returns their intents without the details of the calls."""
    found: list[Intent] = []
    settings = {"CLAUDIUS_PIPELINE_MODE": mode, "CLAUDIUS_SOUL_STATE_INTERVAL": "1"}
    async with minds(home, Scripted(default=reply), settings=settings, **made) as soul:
        commit = soul.mind.store.turns.commit

        async def watched(intent: Intent) -> None:
            """Record the intent."""
            found.append(intent)
            await commit(intent)

        object.__setattr__(soul.mind.store.turns, "commit", watched)
        for n, line in enumerate(("one", "two", "three")):
            await soul.network.hear(line, key=f"k{n}")
            await soul.network.until_visible(n + 1)
        await soul.idle()
    return [
        replace(
            one, calls=(), psyche=None, attention={}, prompt_sha256="", snapshot=b"", blobs={}, nonce="", at=soul.mind.clock().min, entries=tuple(
                replace(entry, at=soul.mind.clock().min) for entry in one.entries
            ), next_process=replace(one.next_process, entered_at=None), noted=timeless(one),
            moments=tuple(replace(moment, at_s=0) for moment in one.moments),
        )
        for one in found
    ]  # fmt: skip


def timeless(intent: Intent) -> Any:
    """Return what a turn adds to the ledger, without its times."""
    assert intent.noted
    lines = tuple(replace(line, at=line.at.min) for line in intent.noted.interactions)
    return replace(intent.noted, interactions=lines)


async def test_split_mode_comes_to_the_same_intent(home: Home, tmp_path: Any) -> None:
    """One call a step: if the provider answers each tag alike, both modes give an equal Intent."""
    whole = (
        '<internal_monologue verb="mused">Hm.</internal_monologue><external_dialogue verb="noted">So.</external_dialogue>'
        '<user_model_check>true</user_model_check><user_model_update section="Persona">- Paints.</user_model_update>'
        "<model_change_note>Paint.</model_change_note><soul_state_check>true</soul_state_check>"
        "<soul_state_update>currentTopic: paint</soul_state_update>"
    )
    other = Home(tmp_path / "other")
    other.create()

    fused, split = await taken(home, "fused", whole), await taken(other, "split", whole)

    assert len(fused) == 3
    assert fused == split


async def test_split_mode_asks_updates_only_after_a_true_check(home: Home) -> None:
    """There is one call per asked step, with earlier results as assistant text. A false check asks for no update."""
    voice = Scripted(default=by_tag(user_model_check="true", soul_state_check="false"))
    settings = {"CLAUDIUS_PIPELINE_MODE": "split", "CLAUDIUS_SOUL_STATE_INTERVAL": "1"}
    plain = declarative(COGNITIVE_STEPS=(
        "internal_monologue", "external_dialogue", "user_model_check", "user_model_update", "model_change_note",
        "soul_state_check", "soul_state_update",
    ))  # fmt: skip
    async with minds(home, voice, settings=settings, greeting=plain) as soul:
        await say(soul, "m")

    assert [wanted(one) for one in voice.requests] == [
        ["internal_monologue"], ["appraisal"], ["acts"], ["external_dialogue"], ["user_model_check"],
        ["user_model_update"], ["model_change_note"], ["soul_state_check"],
    ]  # fmt: skip
    assert "<internal_monologue>It was asked.</internal_monologue>" in voice.requests[1].history[-1].content
    assert len({one.system for one in voice.requests}) == 1


async def test_a_step_with_a_voice_of_its_own_is_asked_apart(home: Home) -> None:
    """Each step's provider and model can be set, and the remaining steps stay one call."""
    from claudius.cognition.mind import StepVoice  # noqa: PLC0415 - beside its only use

    main, small = Scripted(default=by_tag()), Scripted(default=by_tag(user_model_check="false"), name="small")
    async with minds(home, main) as soul:
        force_setattr(soul.mind, "voices", {"user_model_check": StepVoice(small, "tiny")})
        await say(soul, "m")
        calls = every_turn(soul)[0]["calls"]

    assert [wanted(one) for one in main.requests] == [["internal_monologue", "appraisal", "acts", "external_dialogue"]]
    assert [(wanted(one), one.model) for one in small.requests] == [(["user_model_check"], "tiny")]
    assert [call["provider"] for call in calls] == ["scripted", "small"]


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        ({"cache_read_tokens": 30_000, "output_tokens": 50}, {"loops": 2, "reason": "ended"}),
        ({"input_tokens": 30_000, "output_tokens": 50}, {"loops": 1, "reason": "budget"}),
    ],
    ids=["cached", "not cached"],
)
async def test_what_was_cached_is_not_counted_and_why_tells_the_end(
    home: Home, usage: dict[str, int], told: dict[str, Any]
) -> None:
    """A machine's tokens are those that were read anew; `why` tells how often it chose, and what ended it."""
    choices = choosing(["ponder"], ["answer"])

    def priced(request: Request) -> Line:
        """Return the reply with what it used."""
        return Line(deltas=(choices(request),), usage=Usage(**usage))

    made = mental_process(may_execute_now=True)(machine([]))
    async with minds(home, Scripted(default=priced), greeting=made) as soul:
        await say(soul, "Why does it rust?")
        found = soul.records().turn(standing(soul)["entries"][-1]["turn"])

    assert found is not None
    assert found["changes"]["ism"] == told
