"""Conformance 17 to 26: how a conversation moves between processes, and what a failing process leaves behind."""

from datetime import timedelta
from typing import Any

import pytest

from claudius.cognition.conclude.transitions import moved
from claudius.cognition.craft import (
    Interruption,
    Outcome,
    Transition,
    Turn,
    WorkingMemory,
    external_dialogue,
    internal_monologue,
    mental_process,
    mental_query,
)
from claudius.cognition.processes import process, route
from claudius.home import Home
from claudius.perception import SELF
from claudius.providers.scripted import Scripted
from claudius.recollection import ProcessState
from claudius.runtime import lanes
from lab.sample import NOW, recollection
from lab.sample import soul as soul_text
from minds import Clock, by_tag, declarative, minds, say, standing, wanted


async def echo(turn: Turn, memory: WorkingMemory, **params: Any) -> WorkingMemory:
    """Say the current process, without a model."""
    turn.keep(times=turn.kept.get("times", 0) + 1)
    turn.say(f"{turn.invocation_count} {params} {turn.previous_process} {turn.kept['times']}")
    return memory


def going(to: str, **options: Any) -> Any:
    """Return a process that says its target's name and goes there."""

    async def go(turn: Turn, memory: WorkingMemory, **params: Any) -> Outcome:
        """Go there."""
        turn.keep(left="behind")
        turn.say(f"to {to}")
        return Transition(memory, to, **options)

    return mental_process()(go)


async def test_c17_c18_staying_and_going(home: Home) -> None:
    """17, 18: a memory keeps process and params and adds 1 to the count; a transition sets params and count 0."""
    made = {"greeting": going("echo", params={"mood": "calm"}), "echo": mental_process()(echo)}
    async with minds(home, Scripted(), **made) as soul:
        said = await say(soul, "a", "b", "c")
        state = standing(soul)

    params = {"mood": "calm"}
    assert said == ["to echo", f"0 {params} greeting 1", f"1 {params} greeting 2"]
    assert (state["process"], state["invocation_count"], state["params"]) == ("echo", 2, params)


async def test_c19_execute_now_runs_the_target_on_the_same_perception(home: Home) -> None:
    """19: the target runs once, in this turn, on the same perception, which is integrated once."""

    async def first(turn: Turn, memory: WorkingMemory) -> Outcome:
        """Weigh the message, and hand over before anything is said."""
        memory, angry = await turn.think(memory, mental_query("the speaker is angry"))
        return Transition(memory, "second", {"cause": "tone"}, execute_now=angry)

    async def second(turn: Turn, memory: WorkingMemory, *, cause: str) -> Outcome:
        """Answer in place of the first process."""
        memory, line = await turn.think(memory, external_dialogue(f"It is about {cause}."))
        turn.say(line)
        return memory

    voice = Scripted(default=by_tag(mental_query="true", external_dialogue="I hear you."))
    made = {"greeting": mental_process(may_execute_now=True)(first), "second": mental_process()(second)}
    async with minds(home, voice, **made) as soul:
        said = await say(soul, "Grr.")
        state = standing(soul)
        turn = soul.records().turn(state["entries"][0]["turn"]) or {}

    assert said == ["I hear you."]
    assert [wanted(one) for one in voice.requests] == [["mental_query"], ["external_dialogue"]]
    assert "Claudius judged whether the speaker is angry: true" in voice.requests[1].history[-1].content
    assert [one["entry_type"] for one in state["entries"]] == ["userMessage", "mentalQuery", "externalDialog"]
    assert (state["process"], state["previous_process"], state["invocation_count"]) == ("second", "greeting", 1)
    assert turn["changes"]["process"] == {"from": "greeting", "to": "second", "execute_now": True}


async def test_c20_a_circle_of_execute_now_ends_as_a_whole(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """20 ✗: the eleventh hop is an error: the state is as before the turn, and the perception is not run for ever."""
    ran: list[str] = []

    def circling(name: str, to: str) -> Any:
        """Return a process that hands over at once."""

        async def circle(turn: Turn, memory: WorkingMemory) -> Outcome:
            """Hand over."""
            ran.append(name)
            return Transition(memory.note(name), to, execute_now=True)

        return mental_process(may_execute_now=True)(circle)

    monkeypatch.setattr(lanes, "ATTEMPTS", 2)
    made = {"greeting": circling("greeting", "other"), "other": circling("other", "greeting")}
    async with minds(home, Scripted(default=by_tag()), **made) as soul:
        said = await say(soul, "round")
        state = standing(soul)
        counts = soul.records().counts(NOW)

    assert len(said) == 1
    assert "Good to meet you" in said[0]
    assert len(ran) == 2 * 11
    assert (state["process"], state["invocation_count"]) == ("", 0)
    assert [one["entry_type"] for one in state["entries"]] == ["userMessage", "externalDialog"]
    assert counts["inbox"] == {"pending": 0, "dead": 0}


def test_c21_the_previous_process_is_the_last_different_one() -> None:
    """21: after A → B the previous process stays A while B repeats. At the start there is none."""
    state = ProcessState(process="a")
    at_b = moved(state, "a", Transition(to="b"), NOW)
    again = moved(at_b, "b", Transition(to="b"), NOW)
    at_c = moved(again, "b", Transition(to="c"), NOW)

    assert [one.previous_process for one in (state, at_b, again, at_c)] == [None, "a", "a", "b"]


async def test_c22_a_transition_to_itself_is_honoured(home: Home) -> None:
    """22 ✗: re-entry sets new params, count 0 and an empty process memory. With `execute_now` it runs again at once."""

    async def again(turn: Turn, memory: WorkingMemory, *, round: int = 0) -> Outcome:  # noqa: A002 - a word of the test
        """Enter itself until the third round, and then stay."""
        assert turn.kept == {}
        turn.keep(round=round)
        if round < 2:
            return Transition(memory, "greeting", {"round": round + 1}, execute_now=True)
        turn.say(f"round {round}, count {turn.invocation_count}")
        return Transition(memory, "greeting", {"round": 7})

    async with minds(home, Scripted(), greeting=mental_process(may_execute_now=True)(again)) as soul:
        said = await say(soul, "go")
        state = standing(soul)

    assert said == ["round 2, count 0"]
    assert (state["process"], state["params"], state["invocation_count"]) == ("greeting", {"round": 7}, 0)


@pytest.mark.parametrize("returned", [None, "main_process", ["memory"], 7], ids=str)
async def test_c23_what_is_neither_memory_nor_transition_is_an_error(
    home: Home, returned: object, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """23 ✗: for a process that returns nothing, a string or a list, the error names the process and the type."""

    async def wrong(turn: Turn, memory: WorkingMemory) -> Any:
        """Return a value of the wrong type."""
        return returned

    monkeypatch.setattr(lanes, "ATTEMPTS", 1)
    async with minds(home, Scripted(), greeting=mental_process()(wrong)) as soul:
        await say(soul, "m")

    errors = [str(getattr(record, "error", "")) for record in caplog.records]
    assert any(f"process greeting: returned a {type(returned).__name__}" in error for error in errors)


async def test_c24_c25_a_process_that_always_raises_is_given_up(home: Home) -> None:
    """24, 25 ✗: three attempts, one apology, the next perception is answered. Nothing that it staged is kept."""
    tries: list[str] = []

    async def breaks(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Stage every kind of change, and break on one message."""
        turn.keep(staged=True)
        turn.schedule("later", after=timedelta(hours=1), key="k")
        memory, _ = await turn.think(memory, internal_monologue())
        if "break" not in turn.perception.text:
            turn.say("fine")
            return memory
        turn.say("never heard")
        tries.append(turn.perception.text)
        raise RuntimeError("broken")

    voice = Scripted(default=by_tag())
    async with minds(home, voice, greeting=mental_process()(breaks), main_process=mental_process()(breaks)) as soul:
        await soul.network.hear("break")
        await soul.network.hear("go on")
        seen = [one.text for one in await soul.network.until_visible(2)]
        await soul.idle()
        state, plans = standing(soul), soul.records().plans()

    assert len(tries) == 3
    assert "Good to meet you" in seen[0]
    assert seen[1] == "fine"
    heard = [one["content"] for one in state["entries"] if one["entry_type"] == "userMessage"]
    assert heard == ["break", "go on"]
    assert len([one for one in state["entries"] if one["entry_type"] == "internalMonologue"]) == 1
    assert len(plans) == 1
    assert len(voice.requests) == 2


def test_c26_a_saved_process_that_is_gone_gives_way_to_the_entry(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    """26: for an unknown process name the entry process runs, and a warning is logged."""
    known = recollection(process=ProcessState(process="forgotten"))

    found = route(known, soul_text(home))

    assert found.name == "main_process"
    assert [record.message for record in caplog.records] == ["the saved process is gone"]


def test_a_process_is_left_after_its_time(home: Home) -> None:
    """`LINGER`: after longer idleness the conversation starts again; within the time it stays in the process."""
    text, state = soul_text(home), ProcessState(process="frustrated", entered_at=NOW)

    within = recollection(process=state, last_at=NOW, now=NOW + timedelta(hours=1, minutes=59))
    past_it = recollection(process=state, last_at=NOW, now=NOW + timedelta(hours=2, minutes=1))

    assert route(within, text).name == "frustrated"
    assert route(past_it, text).name == "main_process"


async def test_a_frustrated_thread_changes_no_other(home: Home) -> None:
    """A conversation's mood word moves that conversation alone: `soul_state` holds only what this turn changed."""

    def reply(request: Any) -> str:
        """Be short with the one who asks for it."""
        mood = "emotionalState: frustrated" if "provoke" in request.tail else "currentTopic: paint"
        return by_tag(soul_state_check="true", soul_state_update=mood)(request)

    settings = {"CLAUDIUS_SOUL_STATE_INTERVAL": "1", "CLAUDIUS_PSYCHE_ENABLED": "0"}
    async with minds(home, Scripted(default=reply), settings=settings) as soul:
        await say(soul, "hello", person="ben")
        await say(soul, "hello", "provoke", person="ana")
        await say(soul, "again", "and again", person="ben")
        ana, ben = standing(soul), standing(soul, "rehearsal:t:dm-ben:")
        mood = soul.records().state()["emotionalState"]

    assert ana["process"] == "frustrated"
    assert ben["process"] == "main_process"
    assert (mood["value"], mood["audience"]) == ("frustrated", SELF)


async def test_a_declarative_process_that_hands_on_drops_its_dialogue(home: Home) -> None:
    """With `execute_now` a declarative process keeps its monologue; its own dialogue is dropped and never streamed."""
    hands_on = declarative(
        MAY_EXECUTE_NOW=True,
        NEXT=("echo",),
        should_transition=lambda _: Transition(to="echo", params={"n": 1}, execute_now=True),
    )
    voice = Scripted(default=by_tag(internal_monologue="S1", external_dialogue="dropped"))
    settings = {"CLAUDIUS_PIPELINE_STREAM": "rehearsal"}
    async with minds(home, voice, settings=settings, greeting=hands_on, echo=mental_process()(echo)) as soul:
        said = await say(soul, "m")
        state = standing(soul)

    assert said == ["0 {'n': 1} greeting 1"]
    assert [one["content"] for one in state["entries"]] == ["m", "S1", "nothing", "none", said[0]]


async def test_lines_of_several_hops_are_one_utterance(home: Home) -> None:
    """A turn speaks once: the lines of its hops are joined by a blank line."""

    async def first(turn: Turn, memory: WorkingMemory) -> Outcome:
        """Say a line, and hand over."""
        turn.say("One moment.")
        return Transition(memory, "echo", execute_now=True)

    made = {"greeting": mental_process(may_execute_now=True)(first), "echo": mental_process()(echo)}
    async with minds(home, Scripted(), **made) as soul:
        assert await say(soul, "m") == ["One moment.\n\n0 {} greeting 1"]


async def test_a_transition_outside_next_is_refused(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    """A name outside `NEXT`, or an unknown one, leaves the conversation where it is and logs a line."""
    strays = declarative(NEXT=("main_process",), should_transition=lambda _: "frustrated")
    gone = declarative(should_transition=lambda _: "nowhere")
    async with minds(home, Scripted(default=by_tag()), greeting=strays) as soul:
        await say(soul, "m")
        first = standing(soul)["process"]
    async with minds(home, Scripted(default=by_tag()), greeting=gone) as soul:
        await say(soul, "m")
        second = standing(soul)["process"]

    assert (first, second) == ("greeting", "greeting")
    reasons = [getattr(record, "reason", "") for record in caplog.records if record.message == "transition refused"]
    assert reasons == ["not in its NEXT", "no such process"]


async def test_an_owed_turn_without_a_line_asks_one_last_time(home: Home) -> None:
    """If a turn that owes a reply would end without a line, one last `external_dialogue` is asked for."""

    async def mute(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Only think."""
        memory, _ = await turn.think(memory, internal_monologue())
        return memory

    voice = Scripted(default=by_tag(external_dialogue="At last."))
    async with minds(home, voice, greeting=mental_process()(mute)) as soul:
        assert await say(soul, "m") == ["At last."]

    assert [wanted(one) for one in voice.requests] == [["internal_monologue"], ["external_dialogue"]]


@pytest.mark.parametrize(
    "name", ["main_process", "greeting", "deep_work", "frustrated", "proactive", "problem_solving"]
)
def test_every_shipped_transition_is_in_its_next(name: str, home: Home) -> None:
    """House rule: a shipped process names registered processes only, and its judgement leads to these alone."""
    found = process(name)

    assert set(found.next or ()) <= {"main_process", "greeting", "deep_work", "frustrated", "problem_solving"}
    if found.should_transition:
        for mood in ("neutral", "engaged", "focused", "frustrated", "sardonic"):
            for task in ({}, {"currentTask": ""}, {"currentTask": "paint"}):
                to = found.should_transition({"soul_state": {"emotionalState": mood, **task}})
                assert to is None or to in (found.next or ())


async def test_the_graph_of_the_shipped_processes_is_walked(home: Home) -> None:
    """The seed's graph: greeting → main → deep_work → main → frustrated → (two hours) main."""
    moods = iter(["", "emotionalState: focused\ncurrentTask: paint", "currentTask:", "emotionalState: frustrated"])

    def reply(request: Any) -> str:
        """Move the state as told."""
        mood = next(moods, "") if "soul_state_check" in wanted(request) else ""
        return by_tag(soul_state_check=str(bool(mood)).lower(), soul_state_update=mood)(request)

    clock, settings = Clock(), {"CLAUDIUS_SOUL_STATE_INTERVAL": "1"}
    walked = []
    async with minds(home, Scripted(default=reply), settings=settings, clock=clock) as soul:
        for line in ("hello", "so", "work to do", "all painted", "wrong again", "again"):
            clock.forward(minutes=1)
            await say(soul, line)
            walked.append(standing(soul)["process"])
        clock.forward(hours=3)
        await say(soul, "back at last")
        walked.append(standing(soul)["process"])

    assert walked == [
        "main_process", "main_process", "deep_work", "main_process", "frustrated", "frustrated", "main_process",
    ]  # fmt: skip


def test_an_interruption_is_declared_by_value() -> None:
    """Options are values on the process, the same from a module and from a decorator."""
    module = declarative(INTERRUPTION="replace", PARTICIPATION="consume", LINGER=timedelta(hours=1), SILENCE_OK=True)
    from claudius.cognition.processes import declared  # noqa: PLC0415 - beside its only use

    found = declared("quiet", module)

    assert found.interruption is Interruption.REPLACE
    assert (found.participation, found.linger, found.silence_ok) == ("consume", timedelta(hours=1), True)
    assert not found.is_simple
