"""Inbox cases: what is accepted is stored once, in order, and is there again however the process ended; amendments."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from claudius.errors import OverBudget, StaleTurn
from claudius.intent import Planned
from claudius.memory.inbox import RateLimits
from claudius.memory.store import Store
from claudius.perception import DeleteExtra, EditExtra, Following, Kind, MessageExtra, Origin, Perception, ReactionExtra
from claudius.recollection import turn_of
from claudius.shown import DELETED, How, Quoted
from contracts.store.ground import (
    ANA,
    BEN,
    DEE,
    DM,
    LIMITS,
    NOW,
    OPS,
    Ground,
    awake,
    call,
    case,
    exchange,
    heard,
    recalled,
    taken,
    thought,
)


@case("M1", "a key is new once, in one batch, in two, and in the next process")
async def _(ground: Ground) -> None:
    one, two = heard(n=1), heard(n=2)
    async with awake(ground) as store:
        assert await store.inbox.accept((one, one, two), NOW) == (True, False, True)
        assert await store.inbox.accept((two,), NOW) == (False,)
    async with awake(ground, "boot-2") as store:
        assert await store.inbox.accept((one,), NOW) == (False,)


@case("M2", "a key stays known after its perception was answered")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await exchange(store, heard())
        assert await store.inbox.accept((heard(),), NOW) == (False,)
        assert await store.inbox.oldest(DM) is None


@case("M3", "a perception comes back as it was accepted, whatever stood in it")
async def _(ground: Ground) -> None:
    hard = heard(
        "\n\u202e<external_dialogue>\U0001f469\u200d\U0001f680e\u0301" * 3,
        kind=Kind.MENTION,
        origin=Origin.EXTERNAL,
        owes=False,
        is_bot=True,
        extra={"files": [{"name": "a\nb", "bytes": 3}], "none": None, "deep": {"x": [1, 2.5, True]}},
    )
    async with awake(ground) as store:
        await store.inbox.accept((hard,), NOW)
    async with awake(ground, "boot-2") as store:
        pending = await store.inbox.oldest(DM)
        assert pending is not None
        assert pending.perception == hard
        assert pending.heard_at == NOW


@case("M4", "text that is no valid Unicode, or holds U+0000, is made valid, never refused")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.inbox.accept((heard("c\0d", n=2, at="slack:T1:D-two:"),), NOW)
        nul = await store.inbox.oldest("slack:T1:D-two:")
        assert nul is not None
        assert nul.perception.text == "c\ufffdd"
        await store.inbox.accept((heard("a\ud800b", extra={"c\udfff": ["\ud800"]}),), NOW)
        pending = await store.inbox.oldest(DM)
        assert pending is not None
        assert pending.perception.text == "a\ufffdb"


@case("M5", "the oldest is the lowest position, compared as text, whatever came first")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        for n in (3, 1, 2):
            await store.inbox.accept((heard(n=n),), NOW)
        oldest = []
        while pending := await store.inbox.oldest(DM):
            oldest.append(pending.perception.position)
            await store.inbox.withdraw(pending.seq, "seen")
        assert oldest == [f"{n:012d}" for n in (1, 2, 3)]


@case("M6", "conversations do not see each other's perceptions")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.inbox.accept((heard(at=OPS, person=BEN),), NOW)
        assert await store.inbox.oldest(DM) is None
        assert await store.inbox.oldest(OPS) is not None


@case("M7", "a turn's id is a function of its perception's key alone")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        pending = await taken(store, heard())
        assert pending.turn == turn_of(heard().key)
        assert len(pending.turn) == 16


@case("M8", "each taking is counted, and the run's inputs are kept for the next")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        first = await taken(store, heard(), nonce="n1")
        assert (first.state, first.attempts, first.boots, dict(first.inputs)) == ("pending", 0, 0, {})
        await store.inbox.postpone(first.seq, NOW + timedelta(seconds=5), "busy")
        again = await store.inbox.oldest(DM)
        assert again is not None
        assert (again.state, again.attempts, again.boots) == ("pending", 1, 1)
        assert again.inputs["nonce"] == "n1"
        assert again.not_before == NOW + timedelta(seconds=5)


@case("M9", "what an ended process had taken is pending again, its attempts, inputs and calls kept")
async def _(ground: Ground) -> None:
    async with awake(ground, clean=False) as store:
        pending = await taken(store, heard(), nonce="n1")
        store.turns.keep_call(pending.turn, call(0, "first"))
        store.turns.keep_call(pending.turn, call(0, "first"))
        store.turns.keep_call(pending.turn, call(1, "second", purpose="repair"))
    async with awake(ground, "boot-2", clean=False) as store:
        found = await store.inbox.oldest(DM)
        assert found is not None
        assert (found.attempts, found.boots, found.inputs["nonce"]) == (1, 1, "n1")
        assert found.calls == (call(0, "first"), call(1, "second", purpose="repair"))
        store.inbox.take(found.seq, found.inputs, NOW)
    async with awake(ground, "boot-3") as store:
        found = await store.inbox.oldest(DM)
        assert found is not None
        assert (found.attempts, found.boots) == (2, 2)


@case("M10", "a taken perception without a call is pending at the next start; one with a call is thought")
async def _(ground: Ground) -> None:
    async with awake(ground, clean=False) as store:
        await taken(store, heard(at=DM))
        other = await taken(store, heard(at=OPS, person=BEN))
        store.turns.keep_call(other.turn, call())
    async with awake(ground, "boot-2") as store:
        mute, spoken = await store.inbox.oldest(DM), await store.inbox.oldest(OPS)
        assert mute is not None
        assert spoken is not None
        assert (mute.state, spoken.state) == ("pending", "thought")


@case("M11", "a withdrawn perception is never taken again, stays known, and its turn is refused")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        recollection = await recalled(store, heard())
        pending = await store.inbox.oldest(DM)
        assert pending is not None
        await store.inbox.withdraw(pending.seq, "deleted")
        assert await store.inbox.oldest(DM) is None
        assert await store.inbox.accept((heard(),), NOW) == (False,)
        try:
            await store.turns.commit(thought(recollection, "Too late."))
        except StaleTurn:
            assert store.outbox.deliveries(DM) == ()
        else:
            raise AssertionError("a reply to a withdrawn message was committed")


@case("P6", "messages that are joined are one turn, the last one's; its commit answers each")
async def p6(ground: Ground) -> None:
    """Join two of three, and answer them."""
    async with awake(ground) as store:
        await store.inbox.accept(tuple(heard(text, n=n) for n, text in enumerate("abc", 1)), NOW)
        waiting = await store.inbox.unfinished(DM)
        joined = await store.inbox.join(waiting[:2])
        found = await store.turns.recall(joined, nonce="nonce", now=NOW, limits=LIMITS)
        await store.turns.commit(thought(found, "Both."))
        left = await store.inbox.unfinished(DM)
    assert joined.turn == waiting[1].turn
    assert [one.text for one in found.perceptions] == ["a", "b"]
    assert [one.perception.text for one in left] == ["c"]


@case("P7", "what a turn holds is left to the next one under another turn id; what it thought is kept")
async def p7(ground: Ground) -> None:
    """Yield once with a thought, once without."""
    async with awake(ground) as store:
        found = await recalled(store, heard())
        kept = thought(found)
        await store.turns.commit(thought(found, answers=(), held=kept.answers, entries=kept.entries[1:]))
        (first,) = await store.inbox.unfinished(DM)
        await store.inbox.hold(first)
        (second,) = await store.inbox.unfinished(DM)
        again = await store.turns.recall(second, nonce="nonce", now=NOW, limits=LIMITS)
    assert (first.held, second.held) == (1, 2)
    assert len({found.turn, first.turn, second.turn}) == 3
    assert [entry.entry_type for past in again.past for entry in past.entries] == ["internalMonologue"]


@case("P10", "a process's participation decides what a message there is owed, from its acceptance on")
async def p10(ground: Ground) -> None:
    """Set participation to consume, then to always, then back to the place's default."""
    async with awake(ground) as store:
        owed = []
        for n, wanted in enumerate(("consume", "always", ""), 1):
            await exchange(store, heard(n=2 * n), planned=Planned(participation=wanted))
            await store.inbox.accept((heard("m", n=2 * n + 1, owes=n == 1),), NOW)
            found = await store.inbox.oldest(DM)
            assert found is not None
            owed.append(found.perception.owes)
            await store.inbox.withdraw(found.seq, "seen")
    assert owed == [False, True, False]


def mention(n: int = 1) -> Perception:
    """Return a message that mentions the soul in a thread."""
    return heard(n=n, at=OPS, kind=Kind.MENTION)


def said(n: int, **changes: Any) -> Perception:
    """Return a thread message that mentions no one."""
    return heard(n=n, at=OPS, **({"following": Following.DROPPED} | changes))


async def owed(store: Store, *perceptions: Perception) -> list[bool]:
    """Accept them one by one; return, for each one kept, whether a reply is owed."""
    before = await _pending(store)
    for one in perceptions:
        await store.inbox.accept((one,), NOW)
    return [one.owes for one in (await _pending(store))[len(before) :]]


async def _pending(store: Store) -> list[Perception]:
    found: list[Perception] = []
    while (one := await store.inbox.oldest(OPS)) is not None:
        found.append(one.perception)
        await store.inbox.withdraw(one.seq, "seen")
    return found


@case("T1", "after a mention, a message in that thread is owed a reply without one")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        assert await owed(store, mention(), said(2), said(3, person=BEN)) == [True, True, True]


@case("T2", "a thread that the soul was not called into is not kept, or kept and owed nothing, as it comes")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        assert await store.inbox.accept((said(1),), NOW) == (False,)
        assert await owed(store, said(2, following=Following.KEPT)) == [False]


@case("T3", "with three humans in a thread, a message needs a mention again, but stays kept")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await owed(store, mention(), said(2, person=BEN))
        assert await owed(store, said(3, person=DEE), said(4), mention(5)) == [False, False, True]


@case("T4", "what was said before the soul was called is owed nothing, whenever it arrives")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await owed(store, mention(5))
        assert await store.inbox.accept((said(4),), NOW) == (False,)


@case("T5", "after 72 h of silence a thread is no longer followed")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await owed(store, mention())
        late = replace(said(2), at=NOW + timedelta(hours=73))
        assert await store.inbox.accept((late,), NOW) == (False,)


@case("T6", "a message that begins by addressing someone else is kept in a followed thread, and owed nothing")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        assert await owed(store, mention(), said(2, owes=False)) == [True, False]


@case("T7", "the mark of a channel rises with what was swept, not with what came by itself, never falls, and survives")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.inbox.accept((mention(7), mention(3)), NOW)
        assert await store.inbox.marks("slack") == {"T1:ops": f"{7:012d}"}
        await store.inbox.accept((mention(8),), NOW)
        await store.inbox.swept("slack", "T1:ops", f"{5:012d}", NOW)
        await store.inbox.swept("slack", "T1:all", f"{9:012d}", NOW)
    async with awake(ground, "boot-2") as store:
        assert list((await store.inbox.marks("slack")).items()) == [("T1:all", f"{9:012d}"), ("T1:ops", f"{7:012d}")]
        assert await store.inbox.marks("discord") == {}


@case("T9", "a channel that is new is to be swept from where its workspace last was")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.inbox.swept("slack", "T1:", f"{4:012d}", NOW)
        await store.inbox.accept((mention(7),), NOW)
        assert await store.inbox.marks("slack") == {"T1:ops": f"{4:012d}", "T1:": f"{4:012d}"}


def changed(text: str, *, of: int = 1, n: int = 50, person: str = ANA) -> Perception:
    """Return an edit of the n-th message."""
    extra = EditExtra(of=heard(n=of).key)
    return heard(text, n=n, key=f"edit {of} {n}", kind=Kind.EDIT, owes=False, extra=extra, person=person)


def taken_down(of: int = 1) -> Perception:
    """Return a deletion of the n-th message."""
    extra = DeleteExtra(of=heard(n=of).key)
    return heard("", n=99, key=f"delete {of}", kind=Kind.DELETE, owes=False, person="", extra=extra)


@case("M95", "a change of a message that waits is in force at its place, and the newest change wins")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        said = MessageExtra(named={BEN: "ben"}, files=({"name": "a"},))
        for n in (1, 2):
            await store.inbox.accept((heard(f"m{n}", n=n, extra=said),), NOW)
        now_said = replace(changed("newest", n=60), extra=EditExtra(of=heard(n=1).key, named={DEE: "dee"}))
        assert (await store.inbox.amend(now_said, NOW)).conversation == DM
        assert not (await store.inbox.amend(changed("older", n=55), NOW)).is_new
        assert not (await store.inbox.amend(changed("another's", n=70, person=BEN), NOW)).is_new
        oldest = await store.inbox.oldest(DM)
        assert oldest is not None
        assert (oldest.perception.text, oldest.perception.position) == ("newest", heard(n=1).position)
        assert oldest.perception.extra == replace(said, named={DEE: "dee"})  # an erasure finds by it whom it names


@case("M219", "what a waiting message shows of another changes with that, and is gone with it")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        of, other = heard(n=7).key, heard(n=8).key
        answered, above = (
            Quoted(how=How.ANSWERED, text="canary", of=of),
            Quoted(how=How.ABOVE, text="canary too", of=of),
        )
        kept = Quoted(how=How.FORWARDED, text="seed", of=other)
        files = ({"name": "a", "of": of}, {"name": "b"})
        said = MessageExtra(shown=(answered, above, kept), files=files)
        await store.inbox.accept((heard("is that so?", extra=said),), NOW)

        async def shown() -> MessageExtra:
            pending = await store.inbox.oldest(DM)
            assert pending is not None
            assert isinstance(pending.perception.extra, MessageExtra)
            return pending.perception.extra

        await store.inbox.put_right(changed("unknown to everybody", of=9))
        assert await shown() == said
        await store.inbox.put_right(changed("wren", of=7, person=BEN))
        assert [one.text for one in (await shown()).shown] == ["wren", "wren", "seed"]
        await store.inbox.put_right(taken_down(7))
        assert await shown() == MessageExtra(
            shown=(Quoted(how=How.ANSWERED, unread=DELETED), kept), files=({"name": "b"},)
        )


@case("M96", "a turn of the old words is refused, once; a second change waits for its end, however often it comes")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        pending = await taken(store, heard("one"))
        recollection = await store.turns.recall(pending, nonce="n", now=NOW, limits=LIMITS)
        amended = await store.inbox.amend(changed("two", n=50), NOW)
        assert amended.interrupts == pending.turn
        try:
            await store.turns.commit(thought(recollection, "To one."))
        except StaleTurn:
            pass
        else:
            raise AssertionError("a stale turn was committed")
        again = await store.inbox.oldest(DM)
        assert again is not None
        store.inbox.take(again.seq, {}, NOW)
        for _ in range(2):
            assert (await store.inbox.amend(changed("three", n=60), NOW)).interrupts == ""
        await store.turns.commit(thought(await store.turns.recall(again, nonce="n", now=NOW, limits=LIMITS), "To two."))
        waiting = await store.inbox.oldest(DM)
        assert waiting is not None
        assert waiting.perception.kind is Kind.EDIT
        await store.inbox.amend(waiting.perception, NOW)
        assert await store.inbox.oldest(DM) is None


@case("M97", "a message that is taken down is withdrawn, and leaves no words; later changes bring none back")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.inbox.accept((heard("canary"),), NOW)
        assert (await store.inbox.amend(taken_down(), NOW)).is_new
        assert not (await store.inbox.amend(changed("canary"), NOW)).is_new
        assert await store.inbox.oldest(DM) is None
        await exchange(store, heard("canary", n=2))
        await store.inbox.amend(taken_down(2), NOW)
        await store.inbox.amend(changed("canary", of=2), NOW)
        await store.inbox.accept((heard("next", n=3),), NOW)
        pending = await store.inbox.oldest(DM)
        assert pending is not None
        found = await store.turns.recall(pending, nonce="n", now=NOW, limits=LIMITS)
        (entry, *_) = found.past[-1].entries
        assert (entry.content, entry.metadata) == ("", {"deleted": True})


@case("M98", "a message that is stopped is owed the apology, also in the next process; only its speaker stops it")
async def _(ground: Ground) -> None:
    async with awake(ground, clean=False) as store:
        pending = await taken(store, heard("one"))
        await store.inbox.accept((heard("two", n=2),), NOW)
        assert not (await store.inbox.stop(heard("!stop", n=3, person=BEN), NOW, by_owner=False)).is_new
        assert (await store.inbox.stop(heard("!stop", n=3), NOW, by_owner=False)).interrupts == pending.turn
    async with awake(ground, "boot-2") as store:
        first = await store.inbox.oldest(DM)
        assert first is not None
        assert (first.perception.text, first.is_stopped) == ("one", True)
        assert first.turn != pending.turn
        assert not (await store.inbox.stop(heard("!stop", n=3), NOW, by_owner=False)).is_new
        assert (await store.inbox.stop(heard("!stop", n=4), NOW, by_owner=False)).is_new
        assert not (await store.inbox.stop(heard("!stop", n=5), NOW, by_owner=False)).is_new


@case("M99", "a reaction to what was said is kept once, the newest word of it counts; of nothing known it is nothing")
async def _(ground: Ground) -> None:
    def reaction(n: int, *, is_on: bool = True, receipt: str = "receipt-0") -> Perception:
        extra = ReactionExtra(receipt=receipt, emoji="👍", is_on=is_on)
        return heard("", n=n, key="reaction", kind=Kind.REACTION, owes=False, extra=extra)

    async with awake(ground) as store:
        await exchange(store, heard())
        assert (await store.inbox.amend(reaction(10), NOW)).is_new
        assert not (await store.inbox.amend(reaction(10), NOW)).is_new
        assert (await store.inbox.amend(reaction(11, is_on=False), NOW)).is_new
        assert not (await store.inbox.amend(reaction(10), NOW)).is_new
        assert not (await store.inbox.amend(reaction(12, receipt="another's"), NOW)).is_new


@case("M213", "a change that came before its message is in force once that is accepted; a deletion is final")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        for n, first, then in ((1, changed("b", n=52), changed("a", n=51)), (2, taken_down(2), changed("c", of=2))):
            for change in (first, then):
                assert not (await store.inbox.amend(change, NOW)).is_new
            assert await store.inbox.accept((heard("old", n=n),), NOW) == (True,)
        waiting = await store.inbox.unfinished(DM)
        assert [one.perception.text for one in waiting] == ["b"]
        assert (await store.inbox.amend(changed("later", n=53), NOW)).is_new


@case("M214", "the first message over a rate is marked, what follows is refused, and what comes again counts once")
async def _(ground: Ground) -> None:
    limits = RateLimits(person_per_minute=2, person_per_day=9, conversation_per_hour=9)
    async with awake(ground) as store:
        for n in (1, 1, 2, 2, 1):
            await store.inbox.accept((heard(n=n),), NOW, limits)
        await store.inbox.accept((heard(n=3, person=BEN, at=OPS),), NOW, limits)
        await store.inbox.accept((heard(n=3),), NOW, limits)
        with suppress(OverBudget):
            await store.inbox.accept((heard(n=4),), NOW, limits)
            raise AssertionError("a message after the apology was accepted")
        await store.inbox.accept((heard(n=5),), NOW)  # the owner's, or of a history
        waiting = await store.inbox.unfinished(DM)
        assert [one.perception.position for one in waiting] == [heard(n=n).position for n in (1, 2, 3, 5)]
        assert [one.perception.extra.is_over_budget for one in waiting] == [False, False, True, False]


@case("M215", "a bot is heard for its turns in one conversation, and then no more")
async def _(ground: Ground) -> None:
    limits = RateLimits(bot_turns=2)
    async with awake(ground) as store:
        found = [
            await store.inbox.accept((heard(n=n, at=at, is_bot=True),), NOW, limits)
            for n, at in ((1, OPS), (2, OPS), (2, OPS), (3, OPS), (4, DM))
        ]
        assert found == [(True,), (True,), (False,), (False,), (True,)]
