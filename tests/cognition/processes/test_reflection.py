"""Conformance 33 to 38: subprocesses run while a conversation is idle, in order, and are given up as a whole."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from claudius.cognition import reflection
from claudius.cognition.craft import (
    Reflection,
    Subprocess,
    Transition,
    Turn,
    WorkingMemory,
    internal_monologue,
    mental_process,
    subprocess,
)
from claudius.home import Home
from claudius.providers.scripted import Line, Scripted
from minds import by_tag, minds, say, standing, until


@contextmanager
def beside(*made: Subprocess) -> Iterator[None]:
    """Run the test's own subprocesses in place of the shipped ones."""
    before, load = dict(reflection.SUBPROCESSES), reflection._load
    reflection.SUBPROCESSES.clear()
    reflection.SUBPROCESSES.update({one.name: one.name for one in made})
    named = {one.name: one for one in made}
    reflection._load = named.__getitem__  # type: ignore[assignment]  # a test's own registry
    try:
        yield
    finally:
        reflection.SUBPROCESSES.clear()
        reflection.SUBPROCESSES.update(before)
        reflection._load = load


def noting(name: str, order: int, log: list[str]) -> Subprocess:
    """Return a subprocess that remembers its own name."""

    async def note(reflection: Reflection, memory: WorkingMemory) -> WorkingMemory:
        """Think, and record what was there."""
        log.append(f"{name} sees {[one.content for one in memory if one.entry_type == 'internalMonologue']}")
        memory, _ = await reflection.think(memory, internal_monologue(f"Note {name}."))
        return memory

    note.__name__ = name
    return subprocess(order)(note)


async def test_c33_they_run_in_order_each_on_what_the_former_left(home: Home) -> None:
    """33: they run in declared order, and each sees the previous one's memory. None runs while something waits."""
    log: list[str] = []
    thoughts = iter(["of the first line", "of the second line", "A", "B"])
    voice = Scripted(default=by_tag(internal_monologue=lambda _: next(thoughts)))

    with beside(noting("second", 2, log), noting("first", 1, log)):
        async with minds(home, voice) as soul:
            await soul.network.hear("one")
            await soul.network.hear("two")
            await soul.network.until_visible(2)
            await soul.idle()
            entries = standing(soul)["entries"]

    assert log == [
        "first sees ['of the first line', 'of the second line']",
        "second sees ['of the first line', 'of the second line', 'A']",
    ]
    assert [one["content"] for one in entries][-2:] == ["A", "B"]
    assert "## Current Message" not in voice.requests[-1].tail


async def test_c34_c35_a_perception_aborts_it_and_nothing_is_kept(home: Home) -> None:
    """34, 35 ✗: its model call is cancelled, the rest is skipped, no user sees it, and nothing staged is kept."""
    ran: list[str] = []

    async def slow(reflection: Reflection, memory: WorkingMemory) -> WorkingMemory:
        """Stage every kind of change, and then think for ever."""
        ran.append("slow")
        reflection.keep(staged=True)
        reflection.set_state("currentTopic", "nothing")
        reflection.schedule("never", after=timedelta(hours=1))
        memory, _ = await reflection.think(memory, internal_monologue("hang"))
        return memory

    async def later(reflection: Reflection, memory: WorkingMemory) -> None:
        """Record that it ran."""
        ran.append("later")

    hangs = iter([True, False])

    def reply(request: Any) -> Any:
        """Hang the first time that the subprocess asks."""
        if '"hang"' in request.tail and next(hangs, False):
            return Line(hang=True)
        return by_tag()(request)

    voice = Scripted(default=reply)
    with beside(subprocess(1)(slow), subprocess(2)(later)):
        async with minds(home, voice, clean=False) as soul:
            await soul.network.hear("one")
            await soul.network.until_visible(1)
            await until(lambda: voice.open == 1)
            before = standing(soul)
            await soul.network.hear("two")
            await soul.network.until_visible(2)
            aborted = list(ran)
            plans, state = soul.records().plans(), soul.records().state()
            kept = soul.mind.store.turns.kept("rehearsal:t:dm-ana:", "slow")

    assert aborted[:1] == ["slow"]
    assert "later" not in aborted[:2] or aborted.index("later") > 1
    assert len(before["entries"]) == 6
    assert (plans, kept) == ([], {}) or ran.count("slow") == 2
    assert "currentTopic" not in state or ran.count("slow") == 2


async def test_c35_a_stale_subprocess_commits_nothing(home: Home) -> None:
    """35 ✗: if its conversation moved while it thought, its commit is refused as a whole."""

    async def stale(reflection: Reflection, memory: WorkingMemory) -> WorkingMemory:
        """Think while the conversation moves."""
        reflection.keep(late=True)
        intent = reflection.recollection
        await overtake(intent.version)
        memory, _ = await reflection.think(memory, internal_monologue())
        return memory

    async def overtake(version: int) -> None:
        """Move the conversation from outside."""
        await soul_of[0].mind.store.core.write(
            lambda db: db.connection.execute("UPDATE conversation SET version = ?", (version + 1,))
        )

    soul_of: list[Any] = []
    with beside(subprocess(1)(stale)):
        async with minds(home, Scripted(default=by_tag())) as soul:
            soul_of.append(soul)
            await say(soul, "one")
            entries = standing(soul)["entries"]
            kept = soul.mind.store.turns.kept("rehearsal:t:dm-ana:", "stale")

    assert [one["content"] for one in entries][:5] == ["one", "It was asked.", "nothing", "none", "So it is."]
    assert len(entries) == 6
    assert kept == {}


async def test_c36_one_that_raises_does_not_stop_the_next(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    """36: the first raises, the error is logged, and the second runs."""
    ran: list[str] = []

    async def breaks(reflection: Reflection, memory: WorkingMemory) -> None:
        """Break."""
        raise RuntimeError("broken")

    async def next_one(reflection: Reflection, memory: WorkingMemory) -> None:
        """Run in spite of it."""
        ran.append("next")

    with beside(subprocess(1)(breaks), subprocess(2)(next_one)):
        async with minds(home, Scripted(default=by_tag())) as soul:
            await say(soul, "one")

    assert ran == ["next"]
    assert [record.message for record in caplog.records if record.exc_info] == ["a subprocess failed"]


async def test_c37_a_transition_of_a_subprocess(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    """37: `execute_now` is refused with an error. A plain transition takes effect at the next perception."""

    async def now(reflection: Reflection, memory: WorkingMemory) -> Transition:
        """Ask for what is not allowed."""
        return Transition(memory, "deep_work", execute_now=True)

    async def then(reflection: Reflection, memory: WorkingMemory) -> Transition:
        """Name the next process."""
        return Transition(memory, "deep_work", {"why": "quiet"})

    with beside(subprocess(1)(now), subprocess(2)(then)):
        async with minds(home, Scripted(default=by_tag())) as soul:
            await say(soul, "one")
            state = standing(soul)

    assert (state["process"], state["previous_process"], state["params"]) == (
        "deep_work",
        "main_process",
        {"why": "quiet"},
    )
    errors = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert errors == ["subprocess now: a subprocess cannot execute_now: nothing was heard"]


async def test_c38_what_is_kept_survives_transitions_and_plans(home: Home) -> None:
    """38 ✗: a subprocess's memory survives a transition, a process's memory a scheduled turn."""
    seen: list[Any] = []

    async def counts(reflection: Reflection, memory: WorkingMemory) -> None:
        """Count its runs."""
        reflection.keep(runs=reflection.kept.get("runs", 0) + 1)

    async def home_process(turn: Turn, memory: WorkingMemory) -> Any:
        """Keep a count of its own, and leave on a word."""
        turn.keep(turns=turn.kept.get("turns", 0) + 1)
        seen.append(dict(turn.kept))
        turn.say("ok")
        if turn.perception.text == "plan":
            turn.schedule("tick", process="guest", after=timedelta(0), key="k")
        return Transition(memory, "other") if turn.perception.text == "leave" else memory

    async def guest(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Keep something in a guest's memory."""
        turn.keep(mine=True)
        turn.say("tick")
        return memory

    made = {name: mental_process()(home_process) for name in ("greeting", "main_process", "other")}
    with beside(subprocess(1)(counts)):
        async with minds(home, Scripted(), guest=mental_process()(guest), **made) as soul:
            await say(soul, "a")
            await soul.network.hear("plan")
            await soul.network.until_visible(3)
            await soul.idle()
            for line in ("b", "leave", "c"):
                await say(soul, line)
            kept = soul.mind.store.turns.kept("rehearsal:t:dm-ana:", "counts")

    assert seen == [{"turns": 1}, {"turns": 2}, {"turns": 3}, {"turns": 4}, {"turns": 1}]
    assert kept["runs"] in (5, 6)


async def test_it_changes_state_and_plans_in_one_commit(home: Home) -> None:
    """A reflection can change the soul's state and plan: one transaction, and a turn that replays."""

    async def tidies(reflection: Reflection, memory: WorkingMemory) -> WorkingMemory:
        """Set the topic and plan a look."""
        reflection.set_state("currentTopic", "paint")
        reflection.schedule("look at the paint", after=timedelta(hours=2), key="paint")
        memory, _ = await reflection.think(memory, internal_monologue())
        return memory

    with beside(subprocess(1)(tidies)):
        async with minds(home, Scripted(default=by_tag())) as soul:
            await say(soul, "one")
            state, plans = soul.records().state(), soul.records().plans()

    assert state["currentTopic"]["value"] == "paint"
    assert [one["text"] for one in plans] == ["look at the paint"]


async def test_an_unknown_state_value_is_refused(home: Home) -> None:
    """An enumerated key accepts only its own values, from a subprocess too."""
    raised = asyncio.get_running_loop().create_future()

    async def wrong(reflection: Reflection, memory: WorkingMemory) -> None:
        """Set an unknown mood."""
        try:
            reflection.set_state("emotionalState", "furious")
        except ValueError as error:
            raised.set_result(str(error))

    with beside(subprocess(1)(wrong)):
        async with minds(home, Scripted(default=by_tag())) as soul:
            await say(soul, "one")

    assert "furious" in await raised
