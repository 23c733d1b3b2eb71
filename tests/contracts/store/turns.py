"""Turn cases: a turn is committed whole or not at all, and the next one recalls exactly that, within its limits."""

import asyncio
from datetime import timedelta

from claudius.errors import StaleTurn
from claudius.intent import Intent, ModelVersion, Planned, StateChange
from claudius.memory.recall import RecallLimits
from claudius.memory.store import Store
from claudius.perception import SELF, Kind, Origin, private
from claudius.recollection import Entry, EntryType, ProcessState, Shown, Summary
from contracts.store.ground import (
    ANA,
    BEN,
    DEE,
    DM,
    LIMITS,
    NOW,
    OPS,
    OZ,
    Ground,
    awake,
    call,
    case,
    exchange,
    heard,
    recalled,
    taken,
    thought,
    turn,
)


@case("M40", "a new conversation has no past, no version, and an empty portrait of its speaker")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        found = await recalled(store, heard())
    assert (found.version, found.turns, found.past, found.summary, found.left_out) == (0, 0, (), None, None)
    assert (found.conversation, found.audience, found.state, found.others) == (DM, private(ANA), (), ())
    assert found.speaker is not None
    assert (found.speaker.person, found.speaker.name, found.speaker.turns_here) == (ANA, "Ana", 0)
    assert [(m.person, m.audience, m.version, m.markdown) for m in found.speaker.models] == [(ANA, private(ANA), 0, "")]


@case("M39", "a turn is the home's first until a call of another turn was finished")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        first = await taken(store, heard(n=1))
        store.turns.keep_call(first.turn, call())
        await store.flush()
        again = await recalled(store, first.perception)
        later = await recalled(store, heard(n=2, at=OPS))
    assert (again.is_first, later.is_first) == (True, False)


@case("M41", "the next turn recalls what the last one kept, entry by entry")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        first = await exchange(store, heard(n=1), "Hi.")
    async with awake(ground, "boot-2") as store:
        found = await recalled(store, heard(n=2))
    assert (found.version, found.turns) == (1, 1)
    assert [(past.turn, past.nonce, past.number) for past in found.past] == [(first.turn, "nonce", 1)]
    assert found.past[0].entries == first.entries
    assert found.speaker is not None
    assert found.speaker.turns_here == 1


@case("M42", "entries keep metadata, verb, name and every character")
async def _(ground: Ground) -> None:
    kept = (
        Entry(entry_type=EntryType.EVENT, content="\1\u202e\n", at=NOW, person=BEN, name="B\u0301", position="7"),
        Entry(entry_type=EntryType.MENTAL_QUERY, content="?", at=NOW, metadata={"query": "x", "result": True}),
    )
    async with awake(ground) as store:
        await exchange(store, heard(n=1), entries=kept)
        found = await recalled(store, heard(n=2))
    assert found.past[0].entries == kept


@case("M43", "a second commit of a turn changes nothing and succeeds")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        intent = await turn(store, heard(n=1), "Hi.")
        await store.turns.commit(intent)
        await store.outbox.settle(intent.utterances[0].key, "r", NOW)
        await store.turns.commit(intent)
        assert store.outbox.deliveries(DM) == ()
        found = await recalled(store, heard(n=2))
        assert (found.version, found.turns, len(found.past)) == (1, 1, 1)


@case("M44", "a turn whose conversation moved is refused, and nothing of it is kept")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        recollection = await recalled(store, heard(n=2))
        await exchange(store, heard(n=1), "Sooner.")
        changes = {
            "state": (StateChange(key="currentTopic", value="lost", audience=SELF),),
            "model": ModelVersion(person=ANA, audience=private(ANA), version=1, markdown="lost", note="lost"),
        }
        assert await _is_refused(store, thought(recollection, "Stale.", **changes))
        found = await recalled(store, heard(n=2))
        assert (found.turns, found.state, found.speaker and found.speaker.models[0].version) == (1, (), 0)
        assert found.perception.position == heard(n=2).position


@case("M45", "one refused turn does not refuse the turns committed beside it")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        stale = await recalled(store, heard(n=1))
        await exchange(store, heard(n=0), "Sooner.")
        others = [await recalled(store, heard(at=f"slack:T1:D-{n}:")) for n in range(20)]
        commits = [store.turns.commit(thought(one, "Hi.")) for one in (stale, *others)]
        ended = await asyncio.gather(*commits, return_exceptions=True)
    assert isinstance(ended[0], StaleTurn)
    assert not [one for one in ended[1:] if isinstance(one, BaseException)]


@case("M46", "fifty conversations at once keep their own turns")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:

        async def talk(n: int) -> int:
            for i in range(3):
                await exchange(store, heard(f"{n}/{i}", n=i, at=f"slack:T1:D-{n}:"), f"{n}-{i}")
            found = await recalled(store, heard(n=9, at=f"slack:T1:D-{n}:"))
            texts = [entry.content for past in found.past for entry in past.entries]
            return sum(text.startswith((f"{n}/", f"{n}-", f"Of {n}/")) for text in texts)

        assert await asyncio.gather(*map(talk, range(50))) == [9] * 50


@case("M47", "the mental process is written back with the turn")
async def _(ground: Ground) -> None:
    state = ProcessState(
        process="frustrated",
        previous_process="main_process",
        params={"cause": "tone", "n": [1, 2]},
        process_memory={"seen": True},
        invocation_count=3,
        entered_at=NOW,
    )
    async with awake(ground) as store:
        await exchange(store, heard(n=1), next_process=state)
        assert (await recalled(store, heard(n=2))).process == state


@case("M53", "a shown portrait comes back with the text of its version, a pointer with none")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        audience = private(ANA)
        for version in (1, 2):
            model = ModelVersion(person=ANA, audience=audience, version=version, markdown=f"v{version}", note="n")
            await exchange(store, heard(n=version), model=model)
        shown = (
            Shown(person=ANA, audience=audience, version=1, writable=True),
            Shown(person=ANA, audience=audience, version=2, writable=True, pointer=True),
            Shown(person=ANA, audience=audience, version=0, writable=True),
        )
        await exchange(store, heard(n=3), shown=shown)
        found = await recalled(store, heard(n=4))
    assert [(s.version, s.pointer, s.text) for s in found.past[2].shown] == [
        (1, False, "v1"),
        (2, True, ""),
        (0, False, ""),
    ]
    assert found.speaker is not None
    assert [(m.version, m.markdown) for m in found.speaker.models] == [(2, "v2")]


@case("M54", "a portrait's version that is not the next is refused with its whole turn")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        recollection = await recalled(store, heard())
        await store.documents.set_model(ANA, private(ANA), "by hand", "note", "owner", NOW)
        model = ModelVersion(person=ANA, audience=private(ANA), version=1, markdown="lost", note="n")
        assert await _is_refused(store, thought(recollection, "Hi.", model=model))
        found = await recalled(store, heard())
        assert found.speaker is not None
        assert found.speaker.models[0].markdown == "by hand"


@case("M57", "a burst is answered by one turn, and none of it is taken again")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        for n in (1, 2, 3):
            await store.inbox.accept((heard(n=n),), NOW)
        burst = await store.inbox.join(await store.inbox.unfinished(DM))
        recollection = await store.turns.recall(burst, nonce="nonce", now=NOW, limits=LIMITS)
        intent = thought(recollection, "All three.")
        await store.turns.commit(intent)
        assert await store.inbox.oldest(DM) is None
        await store.outbox.settle(intent.utterances[0].key, "r", NOW)
    store = ground.make()
    assert (await store.start("boot-2", NOW)).conversations == ()
    await store.close(clean=True)


@case("M58", "what nobody said has no speaker")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        tick = heard("", kind=Kind.TICK, origin=Origin.INTERNAL, person="", name="", owes=False, audience=private(ANA))
        found = await recalled(store, tick)
        assert found.speaker is None
        await store.turns.commit(thought(found, entries=()))


@case("M59", "dollars are counted once a call, from their instant on; a call without a price costs nothing")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        pending = await taken(store, heard(n=1))
        store.turns.keep_call(pending.turn, call(0, cost_usd=0.25))
        found = await store.turns.recall(pending, nonce="nonce", now=NOW, limits=LIMITS)
        await store.turns.commit(thought(found, "Hi.", calls=(call(0, cost_usd=0.25), call(1, cost_usd=0.5), call(2))))
        assert store.turns.spent_since(NOW - timedelta(minutes=1)) == 0.75
        assert store.turns.spent_since(NOW + timedelta(days=1)) == 0.0
        assert store.turns.calls_unasked(NOW - timedelta(minutes=1)) is None


async def _is_refused(store: Store, intent: Intent) -> bool:
    try:
        await store.turns.commit(intent)
    except StaleTurn:
        return True
    return False


@case("M48", "turns before the rendered history are left out, counted and dated; the border never moves back")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        made = [await exchange(store, heard(n=n), history_from=4 if n == 5 else 0) for n in range(1, 6)]
        await exchange(store, heard(n=6), history_from=2)
        found = await recalled(store, heard(n=7))
    assert [past.number for past in found.past] == [4, 5, 6]
    assert found.left_out is not None
    assert (found.left_out.count, found.left_out.first_at, found.left_out.last_at) == (3, made[0].at, made[2].at)


@case("M49", "turns past their time to live stand apart, oldest first")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        for n in range(1, 5):
            await exchange(store, heard(n=n))
        late = heard(n=5, at=DM)
        found = await recalled(store, late, now=heard(n=3).at + timedelta(hours=72))
    assert [past.number for past in found.expired] == [1, 2]
    assert [past.number for past in found.past] == [3, 4]
    assert found.left_out is None


@case("M50", "a summary takes what it holds out of the history; what of it has expired is deleted, the rest is kept")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        for n in range(1, 5):
            await exchange(store, heard(n=n))
        folded = Summary(text="They met.", sources=(private(ANA),), upto=3, nonce="s")
        pending = await taken(store, heard(n=5))
        now = heard(n=2).at + timedelta(hours=72, seconds=1)
        found = await store.turns.recall(pending, nonce="nonce", now=now, limits=LIMITS)
        await store.turns.commit(thought(found, "Hi.", summary=folded))
        after = await recalled(store, heard(n=6), now=now)
    assert after.summary == folded
    assert [past.number for past in after.past] == [4, 5]
    assert (after.turns, after.expired, after.left_out) == (5, (), None)


@case("M51", "folding an idle conversation replaces its summary, unless a later one stands; each call is paid for")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        intents = [await exchange(store, heard(n=n)) for n in range(1, 4)]
        first = Summary(text="First.", sources=(private(ANA),), upto=1, nonce="s")
        later = Summary(text="Later.", sources=(private(ANA),), upto=2, nonce="s")
        await store.turns.fold(DM, intents[-1].turn, later, (call(100, purpose="summary", cost_usd=0.5),), NOW)
        await store.turns.fold(DM, intents[-1].turn, first, (), NOW)
        at = NOW + timedelta(days=4)
        await store.turns.fold(DM, "of_no_turn", None, (call(100, purpose="summary", cost_usd=0.25),), at)
        found = await recalled(store, heard(n=4))
        assert store.turns.spent_since(NOW - timedelta(days=1)) == 0.75
        assert store.turns.calls_unasked(NOW + timedelta(days=3)) == 1
    assert found.summary == later
    assert [past.number for past in found.past] == [3]
    assert found.version == 3


@case("M52", "at most so many past turns are read, the newest")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        for n in range(1, 6):
            await exchange(store, heard(n=n))
        found = await recalled(store, heard(n=6), limits=RecallLimits(ttl_hours=72, max_past=2))
    assert [past.number for past in found.past] == [4, 5]
    assert found.left_out is not None
    assert found.left_out.count == 3


@case("M55", "of the soul's state each key's newest value is recalled, defaults left out")
async def _(ground: Ground) -> None:
    here, everywhere = private(ANA), SELF
    async with awake(ground) as store:
        for n, (key, value, audience) in enumerate(
            (
                ("emotionalState", "engaged", everywhere),
                ("currentTopic", "bridges", here),
                ("currentTopic", "rust", everywhere),
                ("currentTask", "paint", here),
                ("currentTask", "", here),
            )
        ):
            await exchange(store, heard(n=n), state=(StateChange(key=key, value=value, audience=audience),))
        found = await recalled(store, heard(n=9))
        assert [(s.key, s.value, s.audience) for s in found.state] == [
            ("emotionalState", "engaged", everywhere),
            ("currentTopic", "rust", everywhere),
        ]
        await store.documents.set_state("emotionalState", "neutral", SELF, NOW)
        await store.documents.set_state("currentTopic", "bridges", here, NOW)
        found = await recalled(store, heard(n=9))
        assert [(s.key, s.value) for s in found.state] == [("currentTopic", "bridges")]


@case("M56", "other humans heard since the soul's last reply, latest first, two at most, no bots")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await turn(store, heard(n=1, at=OPS, person=OZ))
        await exchange(store, heard(n=2, at=OPS, person=ANA), "Hi.")
        for n, (person, is_bot) in enumerate(((ANA, False), (BEN, False), ("slack:T1:B1", True), (DEE, False)), 3):
            await turn(store, heard(n=n, at=OPS, person=person, is_bot=is_bot, owes=False))
        found = await recalled(store, heard(n=9, at=OPS, person=BEN))
        third = await recalled(store, heard(n=9, at=OPS, person=BEN, key="other"))
    assert [one.person for one in found.others] == [DEE, ANA]
    assert [one.name for one in found.others] == ["Dee", "Ana"]
    assert third.others == found.others


@case("P8", "what a subprocess keeps is kept with its turn, by its name, and survives a restart")
async def p8(ground: Ground) -> None:
    """Keep state for one of two."""
    async with awake(ground) as store:
        await exchange(store, heard(), planned=Planned(kept={"muse": {"n": [1]}}))
    async with awake(ground, "boot-2") as store:
        kept, other = store.turns.kept(DM, "muse"), store.turns.kept(DM, "other")
    assert (kept, other) == ({"n": [1]}, {})


@case("T8", "conversations of late are found by network, latest first")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await exchange(store, heard(n=1))
        await exchange(store, heard(n=2, at=OPS, kind=Kind.MENTION))
        assert set(store.turns.recent("slack", NOW - timedelta(hours=1))) == {heard().conversation, OPS}
        assert list(store.turns.recent("slack", NOW + timedelta(days=9))) == []
        assert list(store.turns.recent("discord", NOW - timedelta(hours=1))) == []
