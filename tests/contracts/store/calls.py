"""Call cases: a tool is started once, ends once, is decided once, and its end is heard exactly once."""

import asyncio
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from claudius.intent import Intent
from claudius.memory.calls import LEFT as LEFT_OPEN
from claudius.memory.sqlite.store import heard as known_before
from claudius.memory.sqlite.store import take_over
from claudius.memory.store import Store
from claudius.perception import Kind, Perception, Place, ToolExtra, private
from claudius.tool import CallState, Card, Grant, ToolCall, ToolClass
from contracts.store.ground import (
    ANA,
    BEN,
    DM,
    LIMITS,
    NOW,
    OPS,
    OZ,
    Ground,
    awake,
    case,
    exchange,
    heard,
    recalled,
    thought,
)

HOUR = timedelta(hours=1)
UNTIL = NOW + 24 * HOUR


def used(of: str, n: int = 0, *, cls: str = "read", **changes: Any) -> ToolCall:
    """Return the n-th call of a turn."""
    values: dict[str, Any] = {
        "id": f"{of}/{n}", "turn": of, "conversation": DM, "audience": private(ANA), "person": ANA,
        "tool": f"{cls}.it", "cls": ToolClass(cls), "args": {"url": "https://example.org/a"},
    }  # fmt: skip
    return ToolCall(**(values | changes))


def ended(call: ToolCall, state: CallState = CallState.DONE, result: str = "It says hello.") -> ToolCall:
    """Return a call as it ended."""
    return replace(call, state=state, result=result)


async def asked(store: Store, perception: Perception, **changes: Any) -> ToolCall:
    """Run a turn that asks for consent; return the call that waits."""
    known = await recalled(store, perception)
    where: dict[str, Any] = {"conversation": perception.conversation, "audience": perception.audience}
    call = used(known.turn, **({**where, "approvers": (OZ,), "until": UNTIL} | changes))
    await store.turns.commit(thought(known, "May I?", asking=call))
    return call


def consent(call: ToolCall, scope: Any = "talk", **changes: Any) -> Grant:
    """Return what Oz lets be remembered with a call."""
    about: dict[str, Any] = {"tool": call.tool, "pin": "", "person": call.person, "conversation": call.conversation}
    return Grant(id=0, scope=scope, granted_by=OZ, granted_at=NOW, **{"expires_at": UNTIL} | about | changes)


async def ends_heard(store: Store, conversation: str = DM) -> list[tuple[str, str, str, bool]]:
    """Return the perceptions of calls that wait: key, state, text, whether a reply is owed."""
    found = [one.perception for one in await store.inbox.unfinished(conversation)]
    return [
        (one.key, one.extra.state, one.text, one.owes)
        for one in found
        if one.kind is Kind.TOOL and isinstance(one.extra, ToolExtra)
    ]


@case("C1", "a question waits from the turn's commit on, with its card, and is asked once")
async def c1(ground: Ground) -> None:
    """Commit the same turn twice, and read row and card again after a restart."""
    async with awake(ground) as store:
        known = await recalled(store, heard())
        call = used(known.turn, approvers=(ANA, OZ), until=UNTIL, reason="first time here")
        card = Card(
            call=call.id,
            tool=call.tool,
            cls=call.cls,
            question="May I?",
            args="{}",
            approvers=(OZ,),
            who="Oz",
            until=UNTIL,
        )
        intent = thought(known, "May I?", asking=call)
        intent = replace(intent, utterances=(replace(intent.utterances[0], card=card),))
        before = store.calls.open(DM)
        await store.turns.commit(intent)
        await store.turns.commit(intent)
    async with awake(ground, "boot-2") as store:
        (waits,), (delivery,) = store.calls.waiting(), store.outbox.deliveries(DM)
        assert (before, store.calls.next_lapse()) == ((), UNTIL)
        assert waits == replace(call, asked_at=known.now)
        assert (delivery.utterance.card, store.calls.find(call.id)) == (card, waits)
        await store.outbox.settle(delivery.utterance.key, "post-1", NOW)
        channel = Place.of(DM).of_channel
        assert store.calls.asked_in(channel, "post-1") == waits  # by the very post, and while it asks
        assert (store.calls.asked_in(channel, "post-2"), store.calls.asked_in("slack:T:C9", "post-1")) == (None, None)
        await store.calls.card_settled(delivery.utterance.key)
        assert store.calls.asked_in(channel, "post-1") is None


@case("C2", "of all who decide a question, one does; what is allowed is started by its lane, a refusal is heard there")
async def c2(ground: Ground) -> None:
    """Let two decide at once, each way, and one after it has lapsed."""
    async with awake(ground) as store:
        for n, allows in enumerate((True, False), 1):
            call = await asked(store, heard(n=n, at=f"{DM}{n}"))
            decide = [store.calls.decide(call, by, NOW, allows=allows, grant=consent(call)) for by in (OZ, BEN)]
            one, other = await asyncio.gather(*decide)
            assert one is not None
            assert other is None
            state = CallState.APPROVED if allows else CallState.REFUSED
            assert (one.state, one.allowed_by, store.calls.find(call.id)) == (state, OZ, one)
            assert len(store.calls.grants(call.conversation, ANA, NOW)) == 1
            key = f"tool:{call.id}:go" if allows else f"tool:{call.id}"
            assert await ends_heard(store, call.conversation) == [(key, state, "", not allows)]
        late = await asked(store, heard(n=3, at=f"{DM}3"))
        assert await store.calls.lapse(UNTIL - HOUR) == ()
        assert await store.calls.decide(late, OZ, UNTIL, allows=True) is None
        assert await store.calls.lapse(UNTIL) == (f"{DM}3",)
        found = store.calls.find(late.id)
        assert (found and found.state, store.calls.next_lapse()) == (CallState.LAPSED, None)


@case("C3", "a call is started once, and only who started it says how it ended")
async def c3(ground: Ground) -> None:
    """Start twice, with other arguments, end twice, and start what has ended."""
    async with awake(ground) as store:
        call = used((await recalled(store, heard())).turn)
        begun, is_begun = await store.calls.start(call, NOW)
        again = await store.calls.start(call, NOW)
        other = await store.calls.start(replace(call, args={"url": "https://evil.example"}), NOW)
        assert (is_begun, begun.state, begun.attempts, again, other) == (
            True, CallState.STARTED, 1, (begun, False), (begun, False),
        )  # fmt: skip
        assert not await store.calls.end(ended(replace(begun, attempts=2)), NOW)
        assert await store.calls.end(ended(begun), NOW)
        assert not await store.calls.end(ended(begun, CallState.FAILED), NOW)
        found, is_begun = await store.calls.start(call, NOW)
        assert (found.state, found.result, is_begun) == (CallState.DONE, "It says hello.", False)
        assert await ends_heard(store) == []  # its turn is unfinished, and finds it
    async with awake(ground, "boot-2") as store:
        call = used((await recalled(store, heard(n=2))).turn)
        begun, _ = await store.calls.start(call, NOW)
    async with awake(ground, "boot-3") as store:
        assert not await store.calls.end(ended(begun), NOW)


LEFT = (
    ("look", 1, False, CallState.APPROVED),
    ("read", 1, False, CallState.APPROVED),
    ("read", 2, False, CallState.FAILED),
    ("write", 1, False, CallState.UNKNOWN),
    ("send", 1, False, CallState.UNKNOWN),
    ("send", 1, True, CallState.APPROVED),
    ("send", 2, True, CallState.UNKNOWN),
)


@case("C4", "what a process left started is unknown, never repeated, unless that harms nothing: then twice in all")
async def c4(ground: Ground) -> None:
    """Leave calls of each class open once and twice, in a turn that runs again and in one that has ended."""
    for n, (cls, attempts, keyed, state) in enumerate(LEFT, 1):
        for is_over in (False, True):
            where = f"{DM}{n}{int(is_over)}"
            async with awake(ground, f"boot-{where}") as store:
                known = await recalled(store, heard(at=where))
                call = used(known.turn, cls=cls, conversation=where)
                await store.calls.start(call, NOW)
                if is_over:
                    await store.turns.commit(thought(known, "It takes a while.", late=(call.id,)))
            for boot in range(1, attempts):
                async with awake(ground, f"{boot}-{where}") as store:
                    await store.calls.recover(where, NOW, [call.tool] * keyed)
                    await store.calls.start(call, NOW)
            async with awake(ground, f"last-{where}") as store:
                due = await store.calls.recover(where, NOW, [call.tool] * keyed)
                found = store.calls.find(call.id)
                assert found is not None, (cls, attempts, keyed)
                assert found.state is state, (cls, attempts, keyed)
                is_told = is_over and state is not CallState.APPROVED
                assert await ends_heard(store, where) == [(f"tool:{call.id}", state, LEFT_OPEN, True)][: int(is_told)]
                assert [one.id for one in due] == [call.id][: int(is_over and state is CallState.APPROVED)]
                assert await store.calls.recover(where, NOW, ()) == due  # judged once


@case("C5", "the end of a call that outlives its turn is heard once, whichever is first: the end, or the turn's commit")
async def c5(ground: Ground) -> None:
    """End a late call before and after the commit, one whose turn knew it, and those of a turn that failed."""
    async with awake(ground) as store:
        calls: list[ToolCall] = []
        for n, (is_first, is_late) in enumerate(((True, True), (False, True), (True, False)), 1):
            where = f"{DM}{n}"
            known = await recalled(store, heard(at=where))
            call, _ = await store.calls.start(used(known.turn, conversation=where), NOW)
            intent = thought(known, "It takes a while.", late=(call.id,) if is_late else ())
            if is_first:
                await store.calls.end(ended(call), NOW)
            await store.turns.commit(intent)
            if not is_first:
                await store.calls.end(ended(call), NOW)
            expected = [(f"tool:{call.id}", CallState.DONE, "It says hello.", True)][: int(is_late)]
            assert await ends_heard(store, where) == expected, n
            calls.append(call)
        (pending,) = await store.inbox.unfinished(f"{DM}1")
        assert (pending.perception.person, pending.perception.audience) == (ANA, private(ANA))
        told = await store.turns.recall(pending, nonce="n", now=NOW, limits=LIMITS)
        await store.turns.commit(thought(told, "It says hello."))
        found = store.calls.find(calls[0].id)
        assert found is not None
        assert found.told_turn == told.turn
        known = await recalled(store, heard(at=OPS))
        for at, cls in enumerate(("read", "send")):
            call, _ = await store.calls.start(used(known.turn, at, cls=cls, conversation=OPS), NOW)
            await store.calls.end(ended(call), NOW)
        await store.turns.commit(thought(known, "Sorry.", version=None, rung="apology"))
        assert [key for key, *_ in await ends_heard(store, OPS)] == [f"tool:{known.turn}/1"]


@case("C6", "a question is withdrawn with the message that caused it: edited, deleted, stopped")
async def c6(ground: Ground) -> None:
    """Take back the cause of a question in each way; a stop of another's changes nothing."""
    async with awake(ground) as store:
        for n, kind in enumerate((Kind.EDIT, Kind.DELETE, Kind.MESSAGE, Kind.MESSAGE), 1):
            where, by = f"{DM}{n}", ANA if n < 4 else BEN
            cause = heard("Read this.", at=where)
            call = await asked(store, cause)
            for one in store.outbox.deliveries(where):
                await store.outbox.settle(one.utterance.key, "r", NOW)
            extra = {} if kind is Kind.MESSAGE else {"of": cause.key}
            change = heard("!stop", at=where, n=8, person=by, kind=kind, owes=False, extra=extra, key=f"x{n}")
            amend = (
                store.inbox.stop(change, NOW, by_owner=False)
                if kind is Kind.MESSAGE
                else store.inbox.amend(change, NOW)
            )
            assert (await amend).is_new is (by == ANA)
            found = store.calls.find(call.id)
            assert found is not None
            assert found.state is (CallState.WITHDRAWN if by == ANA else CallState.WAITING)
            anew = [(one.perception.text, one.perception.owes) for one in await store.inbox.unfinished(where)]
            assert anew == [("!stop", True)][: int(kind is Kind.EDIT)]


@case("C7", "a consent holds for its tool, its person and its place, until it expires or is revoked")
async def c7(ground: Ground) -> None:
    """Remember one of each scope, and look from three places, later, and after a revocation."""
    async with awake(ground) as store:
        for n, (scope, person, where) in enumerate(
            (("talk", ANA, OPS), ("channel", "", "slack:T1:ops"), ("always", "", ""))
        ):
            call = await asked(store, heard(at=f"{DM}{n}"))
            grant = consent(call, scope, person=person, conversation=where, expires_at=NOW + HOUR)
            await store.calls.decide(call, OZ, NOW, allows=True, grant=grant)
        made = [one.id for one in store.calls.grants(OPS, ANA, NOW)]

        def seen(where: str, person: str, at: Any = NOW) -> list[int]:
            """Return which consents are in force."""
            return sorted(one.id for one in store.calls.grants(where, person, at))

        assert len(made) == 3
        assert seen(OPS, BEN) == made[1:]
        assert seen("slack:T1:other:1", ANA) == made[2:]
        assert seen(OPS, ANA, NOW + HOUR) == []
        assert [await store.calls.revoke(made[1], NOW), await store.calls.revoke(made[1], NOW)] == [True, False]
        assert seen(OPS, ANA) == [made[0], made[2]]


@case("C8", "the calls of a person are counted without those that only look; a record's words expire with its turn")
async def c8(ground: Ground) -> None:
    """Count three calls of one day and one of the day before; expire their turn's record."""
    async with awake(ground) as store:
        intent: Intent = await exchange(store, heard())
        for n, (cls, person, ago) in enumerate(
            (("read", ANA, 1), ("look", ANA, 1), ("send", BEN, 1), ("read", ANA, 30))
        ):
            call = used(intent.turn, n, cls=cls, person=person)
            begun, _ = await store.calls.start(call, NOW - ago * HOUR)
            await store.calls.end(ended(begun), NOW)
        assert (store.calls.spent(ANA, NOW - 24 * HOUR), store.calls.spent(BEN, NOW - 24 * HOUR)) == (1, 1)
        await store.turns.expire_records(NOW + 24 * HOUR, NOW, 100)
        found = store.calls.find(f"{intent.turn}/0")
        assert found is not None
        assert (found.args, found.result, found.state, found.tool) == ({}, "", CallState.DONE, "read.it")


@case("C9", "whoever is forgotten has asked for nothing, and what waits for them is started by nobody")
async def c9(ground: Ground) -> None:
    """Erase one of two people, each with calls and consents; what the other's turn drew on of theirs is withdrawn."""
    async with awake(ground) as store:
        mine = await asked(store, heard(at=f"{DM}1"))
        theirs = await asked(store, heard(person=BEN, at=OPS, n=2), person=BEN)
        also = await asked(store, heard(at=f"{DM}3", n=3))
        await store.calls.decide(also, OZ, NOW, allows=True, grant=consent(also, "always", conversation=""))
        await store.erasure.erase((ANA,))
        assert store.calls.find(mine.id) is None
        assert store.calls.grants(OPS, ANA, NOW) == ()
        found = store.calls.find(theirs.id)
        assert found is not None
        assert found.state is CallState.WAITING


@case(
    "C10", "in a restored copy no question waits and nothing allowed is done; what was begun since is not begun again"
)
async def c10(ground: Ground) -> None:
    """Take over into the same database what it knew while a call was under way, as if that had happened since."""
    async with awake(ground) as store:
        waits = await asked(store, heard(at=f"{DM}1"))
        allowed = await asked(store, heard(at=f"{DM}2"))
        await store.calls.decide(allowed, OZ, NOW, allows=True)
        under_way, _ = await store.calls.start(used((await recalled(store, heard())).turn, cls="send"), NOW)
        before = await store.core.write(known_before)
        await store.core.write(
            lambda db: db.connection.execute("DELETE FROM tool_call WHERE class = :c", {"c": "send"})
        )

        await take_over(store.core, before, NOW)

        found = [one and one.state for one in map(store.calls.find, (waits.id, allowed.id, under_way.id))]
        assert found == [CallState.LAPSED, CallState.WITHDRAWN, CallState.STARTED]
    async with awake(ground, "boot-2") as store:
        assert await store.calls.recover(DM, NOW, ()) == ()
        known, is_begun = await store.calls.start(under_way, NOW)
        assert (known.state, is_begun) == (CallState.UNKNOWN, False)
