"""The second mind's life over a real store: when it reflects, what it writes, and what it never disturbs."""

import asyncio
import json
import logging
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from claudius.cortex.life import Cortex
from claudius.cortex.reflect import system_text
from claudius.errors import ClaudiusError, Overloaded, StoreError
from claudius.home import Home
from claudius.ledger_types import Recorded, Reflected
from claudius.memory.sqlite import SqliteRecords
from claudius.observed import MessageHeard, ModelAnswered
from claudius.providers.scripted import Line
from contracts.store.ground import assess
from lab.sample import soul
from reflecting import ANN, ANN_DM, BEN, DM, NOW, OPS, answer, believing, minutes, second


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Return what the cortex logs, whatever an earlier test did to the log."""
    log = logging.getLogger("claudius.cortex")
    before = log.level, log.propagate
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.addHandler(caplog.handler)
    caplog.handler.setLevel(logging.DEBUG)
    yield caplog
    log.removeHandler(caplog.handler)
    log.level, log.propagate = before


async def trusts(home: Home, peer: str = ANN) -> list[int]:
    """Return every trust that was ever written for a peer, oldest first."""
    records = SqliteRecords(home.database)
    try:
        found = records.peer(peer)
        return [one["trust"] for one in found["assessments"]] if found else []
    finally:
        records.close()


def history(home: Home) -> list[dict[str, Any]]:
    """Return the recorded cycles, newest first."""
    records = SqliteRecords(home.database)
    try:
        return [dict(one) for one in records.reflections(100)]
    finally:
        records.close()


async def test_fr_cx_03_a_cycle_is_one_isolated_call(home: Home) -> None:
    """FR-CX-03: its own system text of under 500 tokens, no history, no session, one fenced document."""
    async with second(home) as it:
        await it.hear_often(5, "Hello")
        (record,) = await it.cortex.look()

    (request,) = it.voice.requests
    assert "reflective cortex of Claudius" in request.system
    assert len(request.system) / 4 < 500
    assert (request.history, request.conversation, request.keep_session) == ((), "", False)
    assert (request.purpose, request.max_tokens) == ("cortex", 800)
    assert request.tail.startswith("<data-")
    assert len(request.tail.splitlines()) == 3
    assert (record.trigger, record.outcome) == ("interaction_count", "done")
    assert it.asked()["trigger"] == "interaction_count"


async def test_the_system_text_is_under_500_tokens(home: Home) -> None:
    """With its values filled in, the system text holds the score guide and stays small, as do the two others."""
    text = soul(home)

    for file in ("cortex.md", "consult.md", "triage.md"):
        filled = system_text(text, file)
        assert "reflective cortex of Claudius" in filled
        assert len(filled) / 4 < 500
    assert text.text("trust.md").strip() in system_text(text)


async def test_fr_cx_04_an_assessment_is_written_with_a_counted_score_and_told(home: Home) -> None:
    """FR-CX-04, FR-CX-09: the model gives trust and reason, information is counted; one event each, exact keys."""
    said = json.loads(answer((ANN, 2)))
    said["assessments"][0]["info_score"] = 9
    async with second(home, json.dumps(said)) as it:
        await it.hear_often(5, "Hello")
        await it.cortex.look()

    (told,) = it.events("cortex.after_assess")
    assert set(told) == {"peer_id", "trust", "rationale", "info_score", "cycle", "assessment_id", "timestamp"}
    assert (told["trust"], told["info_score"], told["cycle"]) == (2, 1, 1)
    assert await trusts(home) == [2]


async def test_fr_cx_09_the_events_have_exactly_these_keys(home: Home) -> None:
    """FR-CX-09, rule 2: an event has these keys, no more and no fewer."""
    said = believing(directives=[{"peer_id": ANN, "action": "thank", "text": "for the patience"}])
    said = json.dumps(json.loads(said) | {"directives": [{"peer_id": ANN, "action": "thank", "text": "thanks"}]})
    async with second(home, said) as it:
        await it.hear_often(5, "Hello")
        await it.cortex.look()

    (reflected,) = it.events("cortex.after_reflect")
    assert set(reflected) == {
        "cycle", "trigger", "peers_assessed", "beliefs_added", "beliefs_reaffirmed", "beliefs_expired",
        "directives_issued", "summary", "elapsed_seconds",
    }  # fmt: skip
    assert reflected["beliefs_added"] == ["ann-is-reliable"]
    (directive,) = it.events("cortex.after_directive")
    assert set(directive) == {"cycle", "directive_id", "peer_id", "action", "text"}


async def test_simulation_05_two_idle_hours(home: Home) -> None:
    """Simulation 5: nothing happens, and no model is asked."""
    async with second(home) as it:
        for _ in range(120):
            it.now += minutes(1)
            await it.cortex.look()

    assert it.voice.requests == []
    assert history(home) == []


async def test_simulation_07_trust_moves_three_points_a_cycle(home: Home) -> None:
    """Simulation 7: +7 from 0 gives 3, and then 6."""
    async with second(home, answer((ANN, 0)), answer((ANN, 7)), answer((ANN, 7))) as it:
        for _ in range(3):
            await it.hear("Hello")
            it.now += minutes(31)
            await it.cortex.look()

    assert await trusts(home) == [0, 3, 6]


async def test_simulation_08_a_first_assessment_is_clamped_too(home: Home) -> None:
    """Simulation 8, anti-pattern "unclamped first": +8 for a new peer gives 3."""
    async with second(home, answer((ANN, 8))) as it:
        await it.hear("Hello")
        it.now += minutes(31)
        await it.cortex.look()

    assert await trusts(home) == [3]


@pytest.mark.parametrize(("said", "comes_to"), [(10, 8), (-10, 2), (5, 5)])
async def test_simulation_09_what_was_judged_before_is_built_upon(home: Home, said: int, comes_to: int) -> None:
    """Simulation 9, rule 12: an inherited +5 moves within 2 to 8, and the old row stays as it was."""
    async with second(home, answer((ANN, said))) as it:
        await it.hear("Hello")
        await assess(it.store, ANN, 5, "Inline, long ago.", NOW, author="inline", sources=(OPS,))
        it.begin(home)
        it.now += minutes(31)
        await it.cortex.look()
        peer = it.store.ledger.query_peer(ANN, OPS)

    assert await trusts(home) == [5, comes_to]
    assert peer
    assert [one.rationale for one in peer.assessments][-1] == "Inline, long ago."


async def test_simulation_02_misleading_answers_are_slow_and_one_fair_one_mends(home: Home) -> None:
    """Simulation 2: three false -10 on +4 lower it by three a cycle, and a fair one raises it by three."""
    bad = answer((ANN, -10))
    async with second(home, bad, bad, bad, answer((ANN, 4))) as it:
        await it.hear("Hello")
        await assess(it.store, ANN, 4, "Good.", NOW, sources=(OPS,))
        for _ in range(4):
            it.now += minutes(31)
            await it.hear("Hello")
            await it.cortex.look()

    assert await trusts(home) == [4, 1, -2, -5, -2]


async def test_simulation_03_five_small_and_one_large(home: Home) -> None:
    """Simulation 3: the pattern fires on the sixth burst and not before, and nothing fires inline in the first five."""
    async with second(home, triggers=["farming"]) as it:
        for n in range(6):
            it.now += minutes(60)
            text = "What time is it?" if n < 5 else "Please transfer 5000 dollars today. Can you? " + "and more " * 40
            await it.hear(text)
            records = await it.cortex.look()
            assert bool(records) is (n == 5)
        again = await it.cortex.look()

    assert records[0].trigger == "farming"
    assert it.asked()["peers"][0]["flags"] == ["farming pattern"]
    assert again == ()


async def test_simulation_04_ten_cycles_stay_within_their_tokens(home: Home) -> None:
    """Simulation 4: ten cycles with five peers, and with fifty, stay within twice the budget and under the ceiling."""
    people = [f"slack:T1:P{n}" for n in range(50)]
    async with second(home) as it:
        for cycle in range(10):
            it.now += minutes(31)
            for person in people[: 5 if cycle < 5 else 50]:
                await it.hear("I would like to know how the bridge is coming along, please.", person=person)
            while await it.cortex.look():
                continue

    sizes = [(len(one.system) + len(one.tail)) // 4 for one in it.voice.requests]
    assert len(sizes) >= 10
    assert max(sizes) <= 2600


async def test_simulation_06_a_belief_leaves_when_its_time_is_over(home: Home) -> None:
    """Simulation 6: after 120 minutes and one second no cycle holds it, and the store has removed it."""
    async with second(home, believing()) as it:
        await it.hear_often(5)
        await it.cortex.look()
        assert len(it.store.ledger.grounds(OPS, [], 1).beliefs) == 1
        it.now += minutes(120.02)
        await it.hear()
        (record,) = await it.cortex.look()
        grounds = it.store.ledger.grounds(OPS, [], 1)

    assert record.beliefs_expired == ("ann-is-reliable",)
    assert grounds.every_belief == ()


async def test_simulation_10_one_cycle_at_a_time(home: Home, said: pytest.LogCaptureFixture) -> None:
    """Simulation 10, rule 11: ten triggers during a cycle are skipped: one cycle, no double rows."""
    async with second(home, Line(deltas=(answer((ANN, 2)),), delay_s=0.3)) as it:
        await it.hear_often(5)
        running = asyncio.create_task(it.cortex.look())
        while not it.voice.open:
            await asyncio.sleep(0.001)
        skipped = [await it.cortex.look() for _ in range(10)]
        (record,) = await running

    assert skipped == [()] * 10
    assert record.outcome == "done"
    assert len(it.voice.requests) == 1
    assert await trusts(home) == [2]
    assert said.text.count("reflection already in progress") == 10
    assert it.cortex._reflecting is False


async def test_rule_11_the_flag_falls_even_where_a_cycle_breaks(home: Home) -> None:
    """Rule 11: after a bug in a cycle the flag is cleared and the events are still there."""

    def broken(_: object) -> str:
        """Break."""
        raise RuntimeError("a bug")

    async with second(home, broken) as it:
        await it.hear_often(5)
        with pytest.raises(RuntimeError):
            await it.cortex.look()
        assert it.cortex._reflecting is False
        (record,) = await it.cortex.look()

    assert record.outcome == "done"
    assert it.asked()["activity"]["events"] == 5


async def test_simulation_11_a_broken_promise_is_followed_up_once(home: Home) -> None:
    """Simulation 11: nothing while it is that day anywhere, then a cycle, one directive in its place, and no second."""
    told = [{"peer_id": ANN, "action": "follow_up", "text": "ask for the portion"}]
    async with second(home, answer(directives=told), triggers=["promise_timeout"]) as it:
        await it.hear("I'll send it tomorrow", at=ANN_DM, by=date(2026, 1, 6))
        await it.hear("Hello", person=BEN)
        it.now = NOW + minutes(2 * 24 * 60 - 1)
        assert await it.cortex.look() == ()
        it.now = NOW + minutes(2 * 24 * 60 + 1)
        record, *_ = await it.cortex.look()
        pending = await it.store.inbox.oldest(ANN_DM)
        it.begin(home)
        it.now += minutes(600)
        assert await it.cortex.look() == ()

    assert (record.trigger, record.audience) == ("promise_timeout", DM)
    assert pending
    assert pending.perception.key == "cortex:1:0"
    assert pending.perception.text == "follow_up Ann: ask for the portion"
    assert it.woken == [ANN_DM]
    assert it.asked(0)["peers"][0]["flags"] == ["its day is over, and it is open: I'll send it tomorrow"]


async def test_simulation_13_nothing_that_happens_meanwhile_or_before_is_lost(home: Home) -> None:
    """Simulation 13: an event during a cycle, and the events of a failed cycle, are both in the next one."""
    async with second(home, "no JSON at all") as it:
        await it.hear_often(5, "before")
        it.voice.say(Line(deltas=("nothing",), delay_s=0.2))
        running = asyncio.create_task(it.cortex.look())
        while not it.voice.open:
            await asyncio.sleep(0.001)
        await it.hear("meanwhile")
        (failed,) = await running
        it.now += minutes(5)
        (record,) = await it.cortex.look()

    assert (failed.outcome, record.outcome) == ("parse_error", "done")
    assert it.asked()["activity"]["events"] == 6
    assert [line["preview"] for line in it.asked()["peers"][0]["timeline"]][-1] == "meanwhile"
    assert [one["outcome"] for one in history(home)] == ["done", "parse_error"]


async def test_simulation_14_a_direct_message_stays_out_of_the_channel(home: Home) -> None:
    """Simulation 14: one person in a DM and a channel gives two cycles, and the channel's document has no DM words."""
    async with second(home, interaction_threshold=4) as it:
        await it.store.people.know_members(OPS, [ANN, BEN], NOW)
        for _ in range(2):
            await it.hear("CANARY in confidence", at=ANN_DM)
            await it.hear("said to all", at="slack:T1:ops:1")
        it.voice.say(believing("secret", "CANARY-BELIEF"), believing("secret", "CANARY-BELIEF"))
        records = await it.cortex.look()
        channel = next(n for n, one in enumerate(records) if one.audience == OPS)
        own = 1 - channel
        for audience in (OPS, DM):
            grounds = it.store.ledger.grounds(audience, [ANN], 10)
            assert {one.audience for one in grounds.beliefs} == ({OPS} if audience == OPS else {OPS, DM})

    assert len(records) == 2
    assert "CANARY" not in it.voice.requests[channel].tail
    assert "CANARY in confidence" in it.voice.requests[own].tail
    assert "said to all" in it.voice.requests[own].tail
    assert records[channel].sources == (OPS,)
    assert set(records[own].sources) == {OPS, DM}


FAILURES = [
    (Line(hang=True), "timeout"),
    (Overloaded("down"), "provider_error"),
    ("I would rather not.", "parse_error"),
    (json.dumps({"summary": 3}), "parse_error"),
]


@pytest.mark.parametrize(
    ("reply", "outcome"), FAILURES, ids=[outcome + str(n) for n, (_, outcome) in enumerate(FAILURES)]
)
async def test_a_failed_cycle_changes_nothing_and_is_on_record(home: Home, reply: Any, outcome: str) -> None:
    """Section 6: beliefs stay, nothing is written except a record, and it tries again later."""
    async with second(home, believing(), reply, reflection_timeout_seconds=0.05) as it:
        await it.hear_often(5)
        await it.cortex.look()
        before = it.store.ledger.grounds(OPS, [ANN], 10)
        await it.hear_often(5)
        (record,) = await it.cortex.look()
        assert await it.cortex.look() == ()
        after = it.store.ledger.grounds(OPS, [ANN], 10)
        it.now += minutes(1)
        (again,) = await it.cortex.look()

    assert record.outcome == outcome
    assert after.every_belief == before.every_belief
    assert await trusts(home) == []
    assert again.outcome == "done"
    assert [one["outcome"] for one in history(home)] == ["done", outcome, "done"]


async def test_without_budget_it_rests(home: Home) -> None:
    """Section 6: past the cortex's share of the day's budget no call is made, and this is recorded."""
    async with second(home) as it:
        it.may_spend = False
        await it.hear_often(5)
        (record,) = await it.cortex.look()

    assert record.outcome == "skipped"
    assert it.voice.requests == []


async def test_without_a_provider_it_rests(home: Home) -> None:
    """Section 6: a missing provider is a failed cycle and nothing worse."""
    async with second(home) as it:

        def gone(_: str) -> Any:
            """Offer no provider."""
            raise ClaudiusError("no such voice")

        it.cortex._ties = type(it.cortex._ties)(
            **{name: getattr(it.cortex._ties, name) for name in it.cortex._ties.__slots__ if name != "voice"},
            voice=gone,
        )
        await it.hear_often(5)
        (record,) = await it.cortex.look()

    assert record.outcome == "provider_error"


async def test_a_cycle_that_could_not_be_written_is_written_by_the_next(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 6: if the store refuses, memory goes on, and the next pass writes the cycle."""
    async with second(home, believing(), answer((ANN, 1))) as it:
        real = it.store.ledger.reflect
        refused: list[Reflected] = []

        async def full_once(reflected: Reflected) -> Recorded:
            """Have no room, once."""
            if not refused:
                refused.append(reflected)
                raise StoreError("no space left")
            return await real(reflected)

        monkeypatch.setattr(it.store.ledger, "reflect", full_once)
        await it.hear_often(5)
        await it.cortex.look()
        assert it.events("cortex.after_reflect") == []
        await it.hear_often(5)
        await it.cortex.look()

    assert [one["cycle"] for one in it.events("cortex.after_reflect")] == [1, 2]
    assert [one["outcome"] for one in history(home)] == ["done", "done"]


async def test_a_restart_takes_up_what_no_cycle_has_seen(home: Home) -> None:
    """What waited waits again after a restart, and what a cycle has taken up does not."""
    async with second(home) as it:
        await it.hear_often(5, "first")
        await it.cortex.look()
        await it.hear_often(5, "second")
        it.begin(home)
        (record,) = await it.cortex.look()
        it.begin(home)
        assert await it.cortex.look() == ()

    assert it.asked()["activity"]["events"] == 5
    assert record.cycle == 2


async def test_the_owner_asks(home: Home) -> None:
    """Manual: there is one cycle, with or without events. If nothing was ever heard, or it is off, it says so."""
    async with second(home) as it:
        with pytest.raises(ClaudiusError, match="nothing to reflect on"):
            await it.cortex.reflect()
        await it.hear("only one")
        first = await it.cortex.reflect()
        second_one = await it.cortex.reflect()
        it.settings["enabled"] = False
        with pytest.raises(ClaudiusError, match="off"):
            await it.cortex.reflect()

    assert [first.trigger, second_one.trigger] == ["manual", "manual"]
    assert it.asked()["peers"][0]["timeline"][-1]["preview"] == "only one"
    assert len(it.voice.requests) == 2


async def test_who_has_no_place_in_a_cycle_is_in_the_next(home: Home) -> None:
    """Peers beyond `max_peers` carry over: their events wait, and the next cycle shows them."""
    async with second(home, interaction_threshold=3, max_peers=1) as it:
        await it.hear("one")
        await it.hear("two")
        await it.hear("three", person=BEN)
        await it.cortex.look()
        it.now += minutes(31)
        await it.cortex.look()

    assert [[one["peer_id"] for one in it.asked(n)["peers"]] for n in range(2)] == [[ANN], [BEN]]


async def test_simulation_14_a_promise_is_told_only_where_it_was_made(home: Home) -> None:
    """Simulation 14: promises overdue in a direct message and in a channel appear in their own audience's cycle."""
    async with second(home, triggers=("promise_timeout",)) as it:
        await it.hear("I'll send the heron today.", at=ANN_DM, by=NOW.date())
        await it.hear("I'll send the bridge today.", by=NOW.date())
        it.now += minutes(25 * 60)
        records = await it.cortex.look()

    told = {record.audience: it.asked(n)["peers"][0]["flags"] for n, record in enumerate(records)}
    assert sorted(told) == sorted((DM, OPS))
    assert "heron" in str(told[DM])
    assert "heron" not in str(told[OPS])
    assert "bridge" in str(told[OPS])


async def test_the_owner_asks_where_only_the_souls_own_thoughts_wait(home: Home) -> None:
    """Manual: there is always one cycle, even if only a call of the first mind waits; it gets the newest rows."""
    async with second(home) as it:
        await it.hear("a word")
        await it.cortex.reflect()
        where: dict[str, Any] = {"turn": "inner", "conversation": "c", "audience": OPS, "timestamp": it.now}
        it.cortex.observe(ModelAnswered(**where, model="m", tokens_in=9, tokens_out=1, stop_reason="end_turn"))
        record = await it.cortex.reflect()

    assert (record.trigger, record.outcome) == ("manual", "done")
    assert it.asked()["peers"][0]["timeline"][-1]["preview"] == "a word"


async def test_whoever_was_forgotten_is_not_waited_for(home: Home) -> None:
    """Events of a person unknown to the ledger are dropped after their turn's time, so no cycle waits for ever."""
    async with second(home, interaction_threshold=1) as it:
        where: dict[str, Any] = {"turn": "gone", "conversation": "c", "audience": OPS, "timestamp": it.now}
        said: dict[str, Any] = {"direction": "in", "channel_type": "channel", "scope": 0, "preview": ""}
        it.cortex.observe(MessageHeard(**where, **said, peer_id="slack:T1:Gone", event_id="e"))
        it.now += minutes(3)
        (first,) = await it.cortex.look()
        it.now += minutes(600)
        after = await it.cortex.look()

    assert (first.outcome, after) == ("skipped", ())


async def test_nfr_cx_03_settings_are_read_at_each_cycle(home: Home) -> None:
    """NFR-CX-03: a change takes effect with the next cycle, without a restart."""
    async with second(home, interaction_threshold=2) as it:
        await it.hear()
        await it.hear()
        assert len(await it.cortex.look()) == 1
        it.settings |= {"interaction_threshold": 3, "model": "a-stronger-one", "context_window": 2}
        await it.hear()
        await it.hear()
        assert await it.cortex.look() == ()
        await it.hear()
        assert len(await it.cortex.look()) == 1

    assert [one.model for one in it.voice.requests] == [None, "a-stronger-one"]
    assert len(it.asked()["peers"][0]["timeline"]) == 2


@pytest.mark.parametrize(("enabled", "name", "on"), [
    ("auto", "anthropic_api", True),
    ("auto", "rehearsal", False),
    ("auto", "scripted", False),
    (True, "rehearsal", True),
    (False, "anthropic_api", False),
])  # fmt: skip
async def test_auto_means_on_with_a_real_model(home: Home, enabled: Any, name: str, *, on: bool) -> None:
    """Section 9: auto is on with a real provider, and off with the rehearsal model and the scripted one."""
    async with second(home, enabled=enabled) as it:
        it.voice.name = name
        assert it.cortex.is_enabled is on
        assert it.cortex.is_active() is False


async def test_its_task_lives_and_ends(home: Home) -> None:
    """Once started it reflects by itself. If it is stopped in mid-cycle it ends at once, with nothing applied."""
    async with second(home, answer((ANN, 1))) as it:
        it.cortex.start()
        assert it.cortex.is_active()
        await it.hear_often(5)
        async with asyncio.timeout(20):
            while not it.events("cortex.after_reflect"):
                await asyncio.sleep(0.01)
        it.voice.say(Line(hang=True))
        await it.hear_often(5)
        async with asyncio.timeout(20):
            while not it.voice.open:
                await asyncio.sleep(0.01)
        await it.cortex.stop()
        assert not it.cortex.is_active()

    assert await trusts(home) == [1]
    assert len(history(home)) == 1


async def test_a_task_that_keeps_failing_stays_inactive(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 6: a bug in the task is caught; after five in a row it is inactive until the restart."""
    falls: list[int] = []

    async def fall(_: Cortex) -> Any:
        """Fail each time."""
        falls.append(1)
        raise RuntimeError("a bug")

    monkeypatch.setattr("claudius.cortex.life.RESTART_S", 0.0)
    monkeypatch.setattr(Cortex, "look", fall)
    async with second(home) as it:
        it.cortex.start()
        async with asyncio.timeout(20):
            while it.cortex.is_active():
                await asyncio.sleep(0.001)

    assert len(falls) == 5


async def test_nfr_cx_05_the_log_has_counts_and_no_words(home: Home, said: pytest.LogCaptureFixture) -> None:
    """NFR-CX-05: INFO has trigger, duration and counts. The whole document and answer are logged at DEBUG alone."""
    async with second(home, answer((ANN, 1), summary="SUMMARY")) as it:
        await it.hear_often(5, "WORDS")
        await it.cortex.look()

    at_info = "\n".join(one.getMessage() for one in said.records if one.levelno >= logging.INFO)
    at_debug = "\n".join(one.getMessage() for one in said.records if one.levelno == logging.DEBUG)
    assert "interaction_count" in at_info
    assert "WORDS" not in at_info
    assert "SUMMARY" not in at_info
    assert "WORDS" in at_debug
    assert "SUMMARY" in at_debug


async def test_it_is_booked_as_the_cortex(home: Home) -> None:
    """Each call is recorded under the job `cortex`, including one without a result, and as the soul's own."""
    async with second(home, "nothing") as it:
        await it.hear_often(5)
        await it.cortex.look()
        it.now += minutes(31)
        await it.cortex.look()
        await it.store.ledger.set_belief("nothing", "pin")
    records = SqliteRecords(home.database)
    rows = [(row[by], row["calls"]) for by in ("job", "person", "conversation") for row in records.usage(by)["rows"]]
    records.close()

    assert rows == [("cortex", 2), ("self", 2), ("self", 2)]


async def test_lessons_are_the_second_minds_alone(home: Home) -> None:
    """Across time: a belief affirmed three times over a day is a lesson, shown to the next cycle without expiry."""
    async with second(home, *([believing()] * 20)) as it:
        for _ in range(16):
            it.now += minutes(100)
            await it.hear()
            await it.cortex.look()
        it.now += minutes(60 * 24 * 90)
        await it.hear()
        await it.cortex.look()

    assert it.asked()["beliefs"] == [] or all("age_minutes" in one for one in it.asked()["beliefs"])
    assert [one["key"] for one in it.asked()["lessons"]] == ["ann-is-reliable"]


async def test_triggers_tune_themselves_only_where_asked(home: Home) -> None:
    """Self-tuning is off by default. If on, ten useless cycles move the count by one, and this survives a restart."""
    async with second(home, adaptive=True, interaction_threshold=3, triggers=["interaction_count"]) as it:
        for _ in range(10):
            await it.hear_often(3)
            assert await it.cortex.look()
        it.begin(home)
        await it.hear_often(3)
        assert await it.cortex.look() == ()
        await it.hear()
        assert await it.cortex.look()


async def test_triage_spares_the_call(home: Home) -> None:
    """Depth by triage: a quiet timer asks no model, and the events stay for a cycle that is worth it."""
    async with second(home, depth="triage") as it:
        await it.hear("Hi")
        it.now += minutes(31)
        (record,) = await it.cortex.look()
        await it.hear_often(4, "Hi")
        it.now += minutes(31)
        (worth_it,) = await it.cortex.look()

    assert (record.outcome, worth_it.outcome) == ("triaged", "done")
    assert len(it.voice.requests) == 1
    assert it.asked()["activity"]["events"] == 5


async def test_triage_by_a_small_model(home: Home) -> None:
    """A triage model says yes or no before the real call is made."""
    async with second(home, "No.", "yes", answer(), depth="triage", triage_model="small") as it:
        await it.hear_often(5, "Hi")
        (first,) = await it.cortex.look()
        it.now += minutes(31)
        (later,) = await it.cortex.look()

    assert (first.outcome, later.outcome) == ("triaged", "done")
    assert [one.model for one in it.voice.requests] == ["small", "small", None]
    assert it.voice.requests[0].max_tokens == 200
