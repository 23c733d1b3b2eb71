"""Outbox cases: a part is durable before its first byte is sent, in order, and never both said and lost."""

from datetime import timedelta

from msgspec.structs import replace

from claudius.acts import PlanCancelled, PlanMade
from claudius.recollection import EntryType
from contracts.store.ground import (
    ANA,
    DM,
    NOW,
    Ground,
    awake,
    case,
    exchange,
    heard,
    part,
    recalled,
    taken,
    thought,
    turn,
)
from contracts.store.moments import moment


@case("M20", "the commit takes a turn's first part; the others wait; each settling takes the next")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        intent = await turn(store, heard(), "one ", "two ", "three")
        found = store.outbox.deliveries(DM)
        assert [one.state for one in found] == ["taken", "pending", "pending"]
        assert [one.utterance for one in found] == list(intent.utterances)
        await store.outbox.settle(intent.utterances[0].key, "r0", NOW)
        assert [one.state for one in store.outbox.deliveries(DM)] == ["taken", "pending"]


@case(
    "M20r",
    "what a turn really did stands with its last words: where they wait, in its entry, in what the commit returns",
)
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        remind = PlanMade(kind="remind", at=NOW + timedelta(days=1), zone="UTC", text="call the dentist", person=ANA)
        known = await recalled(store, heard())
        intent = thought(known, "one ", "two", acts=(remind, PlanCancelled(plans=(404,))))
        committed, again = [await store.turns.commit(intent) for _ in range(2)]
        receipts = committed.utterances[-1].receipts
        assert [line[0] for line in receipts] == ["⏰", "✖"]
        assert [line.rpartition(" ")[2] for line in receipts] == ["p1", "∅"]
        assert [one.utterance.receipts for one in store.outbox.deliveries(DM)] == [(), receipts]
        assert not again.utterances[-1].receipts  # it was committed before
        (past,) = (await recalled(store, heard("next", n=2))).past
        (said,) = [one for one in past.entries if one.entry_type is EntryType.EXTERNAL_DIALOG]
        assert said.metadata == {"receipts": list(receipts)}


@case("M21", "a perception is settled when its last part is sent, and is unfinished no more")
async def _(ground: Ground) -> None:
    async with awake(ground, clean=False) as store:
        await exchange(store, heard(), "one ", "two")
        assert store.outbox.deliveries(DM) == ()
    store = ground.make()
    assert (await store.start("boot-2", NOW)).conversations == ()
    await store.close(clean=True)


@case("M22", "settling twice is settling once")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        intent = await turn(store, heard(), "one ", "two")
        for _ in range(2):
            await store.outbox.settle(intent.utterances[0].key, "r0", NOW)
        assert [one.utterance.part for one in store.outbox.deliveries(DM)] == [1]


@case("M23", "a part that was not delivered for certain is pending until its time")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        intent = await turn(store, heard(), "one")
        until = NOW + timedelta(seconds=30)
        await store.outbox.delay(intent.utterances[0].key, until, "429")
        (waits,) = store.outbox.deliveries(DM)
        assert (waits.state, waits.not_before, waits.attempts) == ("pending", until, 1)
        await store.outbox.attempt(intent.utterances[0].key)
        (again,) = store.outbox.deliveries(DM)
        assert (again.state, again.not_before, again.attempts) == ("taken", None, 2)


@case("M24", "a part that may be visible is unknown, also after a process ended in mid-speech")
async def _(ground: Ground) -> None:
    async with awake(ground, clean=False) as store:
        intent = await turn(store, heard(), "one ", "two")
        await store.outbox.delay(intent.utterances[0].key, None, "timeout", unknown=True)
        assert [one.state for one in store.outbox.deliveries(DM)] == ["unknown_after_send", "pending"]
        await store.outbox.attempt(intent.utterances[0].key)
    async with awake(ground, "boot-2") as store:
        assert [one.state for one in store.outbox.deliveries(DM)] == ["unknown_after_send", "pending"]
        await store.outbox.settle(intent.utterances[0].key, "found", NOW)
        assert [one.state for one in store.outbox.deliveries(DM)] == ["taken"]


@case("M25", "what this process has taken stays taken; taking it again is nothing")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        intent = await turn(store, heard(), "one")
        await store.outbox.attempt(intent.utterances[0].key)
        (found,) = store.outbox.deliveries(DM)
        assert (found.state, found.attempts) == ("taken", 1)


@case("M26", "a part given up ends its turn: nothing of it is delivered later, and nothing waits for it")
async def _(ground: Ground) -> None:
    async with awake(ground, clean=False) as store:
        intent = await turn(store, heard(), "one ", "two ", "three")
        await store.outbox.settle(intent.utterances[0].key, "r0", NOW)
        await store.outbox.undeliverable(intent.utterances[1].key, "is_archived")
        assert store.outbox.deliveries(DM) == ()
        assert await store.inbox.oldest(DM) is None
        await store.outbox.settle(intent.utterances[2].key, "late", NOW)
    store = ground.make()
    assert (await store.start("boot-2", NOW)).conversations == ()
    await store.close(clean=True)


@case("M27", "memory claims as said what was said, and no more: nothing, a part, or all of it")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        whole = await turn(store, heard(n=1), "all ", "of it")
        for utterance in whole.utterances:
            await store.outbox.settle(utterance.key, "r", NOW)
        half = await turn(store, heard(n=2), "first ", "second")
        await store.outbox.settle(half.utterances[0].key, "r", NOW)
        await store.outbox.undeliverable(half.utterances[1].key, "is_archived")
        none = await turn(store, heard(n=3), "never heard")
        await store.outbox.undeliverable(none.utterances[0].key, "is_archived")
        past = (await recalled(store, heard(n=4))).past
    said = [[e.content for e in one.entries if e.entry_type is EntryType.EXTERNAL_DIALOG] for one in past]
    assert said == [["all of it"], ["first "], []]
    assert [one.entries[0].entry_type for one in past] == [EntryType.USER_MESSAGE] * 3


@case("M33", "words that were recalled once are recalled no more when it shows that nobody heard them")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        mine = replace(moment(heard(n=1), ""), turn=(await recalled(store, heard(n=1))).turn, is_own=True)
        intent = await turn(store, heard(n=1), "never heard", moments=(mine,))
        before = await recalled(store, heard(n=2)), store.moments.search(heard(n=2), "heard", 5)
        await store.outbox.undeliverable(intent.utterances[0].key, "is_archived")
        after = await recalled(store, heard(n=2)), store.moments.search(heard(n=2), "heard", 5)
    assert ["never heard" in repr(one) for one in (before[0].past, before[1])] == [True, True]
    assert "never heard" not in repr((after[0].past, after[1]))


@case("M34", "what was said in answer to a perception can be asked for, part by part, whatever became of it")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.inbox.accept((heard(n=2),), NOW)
        intent = await exchange(store, heard(n=1), "one ", "two")
        assert store.outbox.answered(heard(n=1).key) == intent.utterances
        assert store.outbox.answered(heard(n=2).key) == ()
        assert store.outbox.answered("nobody's key") == ()


@case("M28", "an open stream is nothing to deliver until the commit gives it its words; opening twice is nothing")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        recollection = await recalled(store, heard())
        opened = part(recollection.turn, DM, "")
        await store.outbox.open_stream(opened, NOW)
        await store.outbox.open_stream(opened, NOW)
        assert store.outbox.deliveries(DM) == ()
        await store.turns.commit(thought(recollection, "All the words."))
        (whole,) = store.outbox.deliveries(DM)
        assert (whole.state, whole.utterance.body, whole.attempts) == ("taken", "All the words.", 1)
        await store.outbox.settle(whole.utterance.key, "r", NOW)
        assert await store.inbox.oldest(DM) is None


@case(
    "M32", "a stream that was open when its process ended may be visible, and gets its words from the turn's next run"
)
async def _(ground: Ground) -> None:
    async with awake(ground, clean=False) as store:
        recollection = await recalled(store, heard())
        await store.outbox.open_stream(part(recollection.turn, DM, ""), NOW)
    async with awake(ground, "boot-2") as store:
        await store.turns.commit(thought(await recalled(store, heard()), "All the words."))
        (found,) = store.outbox.deliveries(DM)
        assert (found.state, found.utterance.body) == ("unknown_after_send", "All the words.")


@case("M29", "a turn that says nothing settles what it heard at once")
async def _(ground: Ground) -> None:
    async with awake(ground, clean=False) as store:
        await turn(store, heard(owes=False))
        assert await store.inbox.oldest(DM) is None
        assert store.outbox.deliveries(DM) == ()
    store = ground.make()
    assert (await store.start("boot-2", NOW)).conversations == ()
    await store.close(clean=True)


@case("M30", "an unknown part's settling, giving up or delaying is nothing")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await taken(store, heard())
        await store.outbox.settle("no such key", "r", NOW)
        await store.outbox.undeliverable("no such key", "r")
        await store.outbox.delay("no such key", None, "r")
        assert await store.inbox.oldest(DM) is not None


@case("M35", "a part whose sending ended unforeseen may be visible")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await turn(store, heard(), "one ", "two")
        await store.outbox.doubt(DM)
        assert [one.state for one in store.outbox.deliveries(DM)] == ["unknown_after_send", "pending"]


@case("M31", "a part keeps its kind, verb, apology and what it answers")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        recollection = await recalled(store, heard())
        said = part(
            recollection.turn,
            DM,
            "Not now.",
            kind="apology",
            verb="offered",
            apology="over_budget",
            answers=("k1", "k2"),
            person=recollection.perception.person,
        )
        await store.turns.commit(thought(recollection, utterances=(said,)))
        (found,) = store.outbox.deliveries(DM)
        assert found.utterance == said
