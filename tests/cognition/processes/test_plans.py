"""Conformance 39 to 44: a plan is durable, is heard once, and leaves its conversation as it was."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from claudius.cognition.craft import Outcome, Transition, Turn, WorkingMemory, internal, mental_process
from claudius.errors import EXIT_FAILED
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive
from driven import Machine, reply
from minds import START, Clock, both, by_tag, minds, say, standing, until

FIRST = {"CLAUDIUS_PSYCHE_PROACTIVE": "1", "CLAUDIUS_CLOCK_TIMEZONE": "UTC"}
"""The soul may write first, to those who agreed."""


async def planner(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
    """Plan as told: `plan HOURS PROCESS TEXT`."""
    word, _, rest = turn.perception.text.partition(" ")
    turn.keep(turns=turn.kept.get("turns", 0) + 1)
    if word == "plan":
        hours, process, text = rest.split(" ", 2)
        turn.schedule(internal(text), process=process, after=timedelta(hours=float(hours)), params={"n": [1]}, key=text)
    turn.say(f"{turn.invocation_count} {turn.kept['turns']}")
    return memory


async def guest(turn: Turn, memory: WorkingMemory, **params: Any) -> WorkingMemory:
    """Say what came due, and with which params."""
    turn.say(f"due: {turn.perception.text} {params}")
    return memory


async def fires(soul: Alive, clock: Clock, **later: float) -> None:
    """Let time pass, and have the soul check the clock."""
    clock.forward(**later)
    soul.server.tick()


async def comes_due(soul: Alive, clock: Clock, **later: float) -> None:
    """Let time pass until everything planned by then has been heard and thought through."""
    await fires(soul, clock, **later)
    await until(lambda: all(datetime.fromisoformat(one["due_at"]) > clock() for one in soul.records().plans()))
    await until(lambda: not soul.records().counts(clock())["inbox"]["pending"])
    await soul.idle()


def test_c39_plans_are_listed_and_cancelled(tmp_path: Any) -> None:
    """39: plans are listed soonest first, a cancelled one is gone, and cancelling an unknown one is an error."""
    machine = Machine(tmp_path)
    machine.scripted(reply("ok"))
    machine.ok("chat", "--once", "hello")
    asyncio.run(_plan(machine, [(2, "second"), (1, "first"), (3, "third")]))

    listed = machine.ok("schedule", "list", "--json").json
    gone = machine.ok("schedule", "cancel", str(listed[1]["id"]))
    unknown = machine.run("schedule", "cancel", str(listed[1]["id"]))

    assert [one["params"]["name"] for one in listed] == ["first", "second", "third"]
    assert set(listed[0]) >= {"id", "kind", "due_at", "conversation", "process", "params"}
    assert "cancelled" in gone.stdout
    assert unknown.code == EXIT_FAILED
    assert [one["params"]["name"] for one in machine.ok("schedule", "list", "--json").json] == ["first", "third"]


def test_a_promise_is_shown_by_schedule_and_why(tmp_path: Any) -> None:
    """With default settings a dated promise of the soul is listed by `schedule` and reported by `why` for its turn."""
    machine = Machine(tmp_path)
    act = '{"do": "promise", "at": "2030-03-04T09:00", "zone": "UTC", "text": "send the bill"}'
    machine.scripted(f"<acts>{act}</acts>\n{reply('I will send the bill on Monday.')}")
    answered = machine.ok("chat", "--once", "The bill?", "--json").json

    (listed,) = [one for one in machine.ok("schedule", "list", "--json").json if one["kind"] != "job"]
    told = machine.ok("why", answered["turn"], "--json").json

    assert answered["receipts"] == ["⏰ Mon 4 Mar 2030, 9:00 UTC · send the bill · p1"]
    assert {key: listed[key] for key in ("plan", "repeat", "zone", "state", "text", "what")} == {
        "plan": "p1",
        "repeat": "",
        "zone": "UTC",
        "state": "waiting",
        "text": "send the bill",
        "what": "send the bill",
    }
    assert listed["conversation"].startswith("terminal:")
    assert [(one["do"], one["state"]) for one in told["acts"]] == [("promise", "booked")]


async def _plan(machine: Machine, plans: list[tuple[int, str]]) -> None:
    from claudius.intent import Schedule  # noqa: PLC0415 - beside its only use
    from claudius.memory.sqlite import SqliteStore  # noqa: PLC0415 - likewise

    store = SqliteStore(machine.home / "state" / "claudius.db")
    await store.open()
    for hours, name in plans:
        at = START.replace(year=2090) + timedelta(hours=hours)
        made = Schedule(
            id=hours,
            conversation="terminal:local:main:main",
            at=at,
            text=name,
            process="proactive",
            params={"name": name},
        )
        await store.plans.plan(made)
    await store.close(clean=True)


async def test_c40_c41_the_resident_is_restored_after_a_borrowed_turn(home: Home) -> None:
    """40, 41: an internal perception borrows the target; the resident process, its count and memory are as before."""
    clock = Clock()
    async with minds(home, Scripted(), clock=clock, guest=mental_process()(guest), **both(planner)) as soul:
        await say(soul, "plan 1 guest tea", "b")
        before = standing(soul)
        await fires(soul, clock, hours=1)
        await soul.network.until_visible(3)
        await soul.idle()
        after = standing(soul)
        said = await say(soul, "c")

    assert said == ["0 1", "1 2", "due: tea {'n': [1]}", "2 3"]
    for key in ("process", "previous_process", "invocation_count", "params"):
        assert before[key] == after[key]
    assert [one["content"] for one in after["entries"] if one["entry_type"] == "perception"] == ["tea"]


async def test_c40_the_targets_own_transition_wins(home: Home) -> None:
    """40: a borrowed process that returns a transition moves the conversation."""

    async def mover(turn: Turn, memory: WorkingMemory, **_: Any) -> Outcome:
        """Go to another process."""
        turn.say("moving")
        return Transition(memory, "deep_work", {"why": "due"})

    clock = Clock()
    async with minds(home, Scripted(), clock=clock, mover=mental_process()(mover), **both(planner)) as soul:
        await say(soul, "plan 1 mover go")
        await fires(soul, clock, hours=1)
        await soul.network.until_visible(2)
        await soul.idle()
        state = standing(soul)

    assert (state["process"], state["previous_process"], state["params"]) == ("deep_work", "greeting", {"why": "due"})


async def test_c41_a_target_that_raises_leaves_the_resident_as_it_was(home: Home) -> None:
    """41 ✗: both are kept, nothing is said about it, and the resident process is not stuck."""

    async def breaks(turn: Turn, memory: WorkingMemory, **_: Any) -> WorkingMemory:
        """Break."""
        raise RuntimeError("broken")

    clock = Clock()
    async with minds(home, Scripted(), clock=clock, breaks=mental_process()(breaks), **both(planner)) as soul:
        await say(soul, "plan 1 breaks go")
        await fires(soul, clock, hours=1)
        await until(lambda: any(one["entry_type"] == "perception" for one in standing(soul)["entries"]))
        said = await say(soul, "b")
        state = standing(soul)

    assert said == ["0 1", "1 2"]
    assert (state["process"], state["invocation_count"]) == ("greeting", 2)


async def test_c42_a_borrowed_process_that_executes_now(home: Home) -> None:
    """42 ✗: its target runs once, and is the resident process from then on."""
    ran: list[str] = []

    async def hands_on(turn: Turn, memory: WorkingMemory, **_: Any) -> Outcome:
        """Hand over at once."""
        ran.append("hands_on")
        return Transition(memory, "target", execute_now=True)

    async def target(turn: Turn, memory: WorkingMemory) -> Outcome:
        """Speak."""
        ran.append(f"target on {turn.perception.text}")
        turn.say("here")
        return memory

    made = {"hands_on": mental_process(may_execute_now=True)(hands_on), "target": mental_process()(target)}
    clock = Clock()
    async with minds(home, Scripted(), clock=clock, **made, **both(planner)) as soul:
        await say(soul, "plan 1 hands_on go")
        await fires(soul, clock, hours=1)
        await soul.network.until_visible(2)
        await soul.idle()
        state = standing(soul)

    assert ran == ["hands_on", "target on go"]
    assert (state["process"], state["previous_process"], state["invocation_count"]) == ("target", "greeting", 1)


async def test_c43_sixty_days_and_a_restart(home: Home) -> None:
    """43 ✗: dict params, 60 days and a restart: params are equal, never early, and late only within the grace."""
    clock = Clock()
    made = {"guest": mental_process()(guest), **both(planner)}
    async with minds(home, Scripted(), clock=clock, **made) as soul:
        await say(soul, "plan 1440 guest sixty", "plan 1440 guest again", "plan 1440 guest sixty")
    clock.forward(days=60, hours=-1)
    async with minds(home, Scripted(), clock=clock, **made) as soul:
        assert len(soul.records().plans()) == 2
        await fires(soul, clock, hours=1, minutes=1)
        seen = [one.text for one in await soul.network.until_visible(2)]

    assert sorted(seen) == ["due: again {'n': [1]}", "due: sixty {'n': [1]}"]


@pytest.mark.parametrize(("asked", "heard"), [(False, False), (True, True)], ids=["the soul's own", "asked for"])
async def test_c43_what_comes_too_late(home: Home, *, asked: bool, heard: bool) -> None:
    """43: a plan of the soul's own lapses past the grace and is listed so; a requested one states its due time."""

    async def plans(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Plan once."""
        if turn.perception.text == "plan":
            turn.schedule("tea", process="guest", after=timedelta(hours=1), asked=asked)
        turn.say("ok")
        return memory

    clock = Clock()
    made = {"guest": mental_process()(guest), **both(plans)}
    async with minds(home, Scripted(), clock=clock, **made) as soul:
        await say(soul, "plan")
    clock.forward(days=3)
    async with minds(home, Scripted(), clock=clock, **made) as soul:
        if heard:
            (seen,) = await soul.network.until_visible(1)
            assert seen.text == "due: tea (this was due at 2026-01-05 13:00 UTC) {}"
        else:
            await until(lambda: [one for one in soul.records().plans() if one["lapsed_at"]])
            assert soul.network.visible == []


@pytest.mark.parametrize(
    ("planned_by", "process", "speaks"),
    [
        ("an answer", "guest", True),
        ("an answer", "", True),
        ("an answer", "proactive", False),
        ("a turn of its own", "guest", False),
        ("a turn of its own", "", False),
    ],
)
async def test_a_plan_made_in_answering_somebody_may_speak(
    home: Home, planned_by: str, process: str, *, speaks: bool
) -> None:
    """At night, to someone who never agreed, a plan speaks if the turn that made it answered a person."""

    async def talk(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Plan while answering, or in the turn of a plan of its own. Say what comes due."""
        text = turn.perception.text
        if text == "begin" and planned_by != "an answer":
            turn.schedule("plan", after=timedelta(hours=1))
        elif text in ("begin", "plan"):
            turn.schedule("tea", process=process, after=timedelta(hours=15))
        if text != "plan":
            turn.say(text)
        return memory

    clock, voice = Clock(), Scripted(default=by_tag(external_dialogue="tea"))
    made = {"guest": mental_process()(guest), **both(talk)}
    async with minds(home, voice, clock=clock, settings={"CLAUDIUS_CLOCK_TIMEZONE": "UTC"}, **made) as soul:
        await say(soul, "begin")
        for hours in (1, 15):
            await comes_due(soul, clock, hours=hours)
        left, seen = soul.records().plans(), [one.text.removeprefix("due: ")[:3] for one in soul.network.visible]

    assert seen[1:] == (["tea"] if speaks else [])
    assert [one for one in left if not one["lapsed_at"]] == []


async def test_a_plan_made_in_answering_somebody_may_stay_silent(home: Home) -> None:
    """It is the soul's own plan: no word is owed when it comes due, and no one is told that none came."""

    async def silent(turn: Turn, memory: WorkingMemory, **_: Any) -> WorkingMemory:
        """Say nothing."""
        return memory

    clock = Clock()
    async with minds(home, Scripted(), clock=clock, silent=mental_process()(silent), **both(planner)) as soul:
        await say(soul, "plan 1 silent tea")
        await comes_due(soul, clock, hours=1)
        entries = [one["content"] for one in standing(soul)["entries"]]

    assert [one.text for one in soul.network.visible] == ["0 1"]
    assert entries[-1] == "tea"


async def test_c44_a_due_plan_waits_for_the_lane(home: Home) -> None:
    """44: what comes due during a turn is heard after it, and after what already waited."""
    asked, opened = asyncio.Event(), asyncio.Event()

    async def slow(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Wait until released."""
        if turn.perception.text == "slow":
            asked.set()
            await opened.wait()
        if turn.perception.text == "plan":
            turn.schedule("tea", process="guest", after=timedelta(hours=1))
        turn.say(turn.perception.text)
        return memory

    clock = Clock()
    async with minds(home, Scripted(), clock=clock, guest=mental_process()(guest), **both(slow)) as soul:
        await say(soul, "plan")
        await soul.network.hear("slow")
        await asked.wait()
        await soul.network.hear("waiting")
        await fires(soul, clock, hours=1)
        await until(lambda: soul.records().counts(clock())["inbox"]["pending"] == 3)
        opened.set()
        seen = [one.text for one in await soul.network.until_visible(4)]

    assert seen == ["plan", "slow", "waiting", "due: tea {}"]


async def test_proactive_may_stay_silent(home: Home) -> None:
    """`SILENCE_OK`: if the borrowed process decides against speaking, a thought is kept and no repair is asked for."""

    async def plans(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Plan to look in."""
        turn.schedule("Ask whether it is better now.", process="proactive", after=timedelta(hours=20), key="anger")
        turn.say("ok")
        return memory

    voice, clock = Scripted(default="<internal_monologue>Not now.</internal_monologue>"), Clock()
    async with minds(home, voice, clock=clock, settings=FIRST, **both(plans)) as soul:
        await soul.mind.store.people.wish("rehearsal:t:ana", proactive=True, now=clock())
        await say(soul, "plan")
        await fires(soul, clock, hours=20)
        await until(lambda: len(standing(soul)["entries"]) == 4)
        await soul.idle()
        entries = standing(soul)["entries"]

    assert len(voice.requests) == 1
    assert "Give the one reason" in voice.requests[0].tail
    assert [one["content"] for one in entries][2:] == ["Ask whether it is better now.", "Not now."]


async def test_proactive_speaks_where_it_has_a_reason(home: Home) -> None:
    """The same process may speak: its one utterance goes to the conversation it was planned for."""

    async def plans(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Plan to look in."""
        turn.schedule("Ask whether it is better now.", process="proactive", after=timedelta(hours=20))
        turn.say("ok")
        return memory

    clock, voice = Clock(), Scripted(default=by_tag(external_dialogue="Better?"))
    async with minds(home, voice, clock=clock, settings=FIRST, **both(plans)) as soul:
        await soul.mind.store.people.wish("rehearsal:t:ana", proactive=True, now=clock())
        await say(soul, "plan")
        await fires(soul, clock, hours=20)
        seen = await soul.network.until_visible(2)

    assert (seen[1].text, seen[1].conversation) == ("Better?", "rehearsal:t:dm-ana:")
