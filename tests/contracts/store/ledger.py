"""Ledger cases: who the peers are, who may see it, and how a cycle of the cortex is read for and applied, once."""

from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from claudius.acts import MatterClosed, MatterOpened
from claudius.intent import Call
from claudius.ledger_types import (
    Belief,
    Directive,
    Interaction,
    Lesson,
    Noted,
    Proposal,
    Reflected,
    Reflection,
    Tuned,
)
from claudius.memory.store import Store
from claudius.perception import Kind, Origin, Perception, private, shared
from contracts.probes import tally
from contracts.store.ground import ANA, BEN, DM, NOW, OPS, Ground, assess, awake, call, case, exchange, heard

OPS_AUDIENCE = shared(OPS)


def line(perception: Perception, **changes: Any) -> Interaction:
    """Return the ledger entry of something heard."""
    values: dict[str, Any] = {
        "peer_id": perception.person,
        "name": perception.name,
        "at": perception.at,
        "direction": "in",
        "channel_type": "dm",
        "conversation": perception.conversation,
        "audience": perception.audience,
        "turn": perception.key,
        "scope": 7,
        "preview": perception.text,
    }
    return Interaction(**(values | changes))


async def talk(store: Store, *perceptions: Perception, noted: Noted | None = None) -> None:
    """Run turns that are recorded in the ledger."""
    for perception in perceptions:
        kept = noted or Noted()
        await exchange(store, perception, noted=replace(kept, interactions=(line(perception),)))


def messages(count: int, *, person: str = ANA, at: str = DM, first: int = 1) -> list[Perception]:
    """Return messages, a day apart."""
    return [
        replace(heard(f"words {n}", n=n, person=person, at=at), at=NOW + timedelta(days=n))
        for n in range(first, first + count)
    ]


async def refused(store: Store, peer: str, trust: Any, rationale: str = "Because.") -> bool:
    """Return whether an assessment is refused."""
    try:
        await assess(store, peer, trust, rationale)
    except ValueError:
        return True
    return False


@case("M100", "a turn's commit keeps its interactions, makes the peer and counts; a second commit counts nothing")
async def _(ground: Ground) -> None:
    said = messages(6)
    async with awake(ground) as store:
        for perception in said:
            intent = await exchange(store, perception, noted=Noted(interactions=(line(perception),)))
            await store.turns.commit(intent)
        peer = store.ledger.query_peer(ANA, private(ANA))
        lines = store.ledger.timeline(ANA, 4, private(ANA))
        assert store.ledger.query_peer(BEN, private(BEN)) is None
    assert peer is not None
    assert (peer.messages, peer.first_at, peer.last_at) == (6, said[0].at, said[-1].at)
    assert peer.info_score == tally(one.at for one in said).info_score(0)
    assert [one.preview for one in lines] == ["words 3", "words 4", "words 5", "words 6"]


@case("M101", "one way in: an assessment is checked, scored by counting, written once, and never changed")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await talk(store, *messages(3))
        for trust in (11, -11, 2.5, True, "3", None):
            assert await refused(store, ANA, trust), trust
        assert await refused(store, ANA, 3, "  ")
        assert await refused(store, BEN, 3)
        first = await assess(store, ANA, 3, "Three good exchanges.")
        second = await assess(store, ANA, 4, "Another.", author="inline")
        found = store.ledger.query_peer(ANA, private(ANA))
        assert store.ledger.latest_trust() == {ANA: 4}
    assert second > first
    assert found is not None
    assert found.newest is not None
    assert (found.newest.trust, found.newest.rationale, found.trajectory) == (4, "Another.", (3, 4))
    assert found.info_score == tally(one.at for one in messages(3)).info_score(2)
    assert found.messages == 3


@case("M102", "an assessment without sources stands on every audience that its peer was heard in")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await talk(store, *messages(2), *messages(2, at=OPS))
        await assess(store, ANA, 2, "Both.")
        peer = store.ledger.query_peer(ANA, private(ANA))
        unknown = store.ledger.query_peer(ANA, OPS_AUDIENCE)
    assert peer is not None
    assert unknown is not None
    assert peer.newest is None
    assert unknown.newest is None

    async with awake(ground, "boot-2") as store:
        await store.people.know_members(OPS_AUDIENCE, [ANA, BEN], NOW)
        peer = store.ledger.query_peer(ANA, private(ANA))
        there = store.ledger.query_peer(ANA, OPS_AUDIENCE)
    assert peer is not None
    assert there is not None
    assert peer.newest is not None
    assert peer.newest.sources == tuple(sorted((private(ANA), OPS_AUDIENCE)))
    assert there.newest is None
    assert (peer.messages, there.messages) == (4, 2)


@case("M103", "trust, trajectory, rationale and counts come from what may be shown, however much else there is")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await talk(store, *messages(2), *messages(2, at=OPS))
        await store.people.know_members(OPS_AUDIENCE, [ANA, BEN], NOW)
        await assess(store, ANA, 1, "In the channel.", sources=(OPS_AUDIENCE,))
        for _ in range(50):
            await assess(store, ANA, -3, "In private.", sources=(private(ANA),))
        own, channel = (store.ledger.query_peer(ANA, private(ANA)), store.ledger.query_peer(ANA, OPS_AUDIENCE))
        other = store.ledger.query_peer(ANA, private(BEN))
    assert own is not None
    assert channel is not None
    assert other is not None
    assert own.trajectory == (-3,) * 5
    assert channel.trajectory == other.trajectory == (1,)
    assert (own.messages, channel.messages, other.messages) == (4, 2, 2)
    assert own.info_score > channel.info_score == tally(one.at for one in messages(2)).info_score(1)


@case("M119", "two ids of one person on one channel's list count what was said there once")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await talk(store, *messages(2), *messages(2, at=OPS))
        await store.people.know_members(OPS_AUDIENCE, [ANA, BEN, f"{ANA}2"], NOW)
        await exchange(store, heard("Hello.", n=9, person=f"{ANA}2", at=OPS))
        await store.people.link(ANA, f"{ANA}2")
        found = [store.ledger.query_peer(ANA, audience) for audience in (private(ANA), OPS_AUDIENCE)]
    assert [one and one.messages for one in found] == [4, 2]


@case("M104", "a timeline holds what its audience may read, newest last")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await talk(store, *messages(2), *messages(2, at=OPS, first=3))
        await store.people.know_members(OPS_AUDIENCE, [ANA, BEN], NOW)
        own = store.ledger.timeline(ANA, 10, private(ANA))
        channel = store.ledger.timeline(ANA, 10, OPS_AUDIENCE)
    assert [one.preview for one in own] == ["words 1", "words 2", "words 3", "words 4"]
    assert [one.preview for one in channel] == ["words 3", "words 4"]


@case("M106", "an assessment of a turn is held to its bound around the last one; a bad one never breaks the turn")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        said = messages(4)
        proposal = Proposal(peer_id=ANA, trust=9, rationale="Inline.", author="inline", limit=3, sources=())
        await talk(store, said[0], noted=Noted(proposal=proposal))
        assert store.ledger.latest_trust() == {ANA: 3}
        await talk(store, said[1], noted=Noted(proposal=proposal))
        assert store.ledger.latest_trust() == {ANA: 6}
        await talk(store, said[2], noted=Noted(proposal=replace(proposal, peer_id="slack:T1:nobody")))
        await talk(store, said[3], noted=Noted(proposal=replace(proposal, rationale=" ")))
        peer = store.ledger.query_peer(ANA, private(ANA))
    assert peer is not None
    assert peer.messages == 4
    assert peer.trajectory == (3, 6)


@case("M108", "what no cycle has taken up comes back, oldest first, after a crash too")
async def _(ground: Ground) -> None:
    async with awake(ground, clean=False) as store:
        await talk(store, *messages(3))
    async with awake(ground, "boot-2") as store:
        waiting = store.ledger.unreflected(200)
        few = store.ledger.unreflected(2)
        newest = store.ledger.newest_interactions(2)
        heard_of, trusts = store.ledger.inbound(ANA, 2)
        assert store.ledger.are_noted([one.key for one in messages(3)])
        assert not store.ledger.are_noted(["not yet"])
    assert [one.preview for one in waiting] == ["words 1", "words 2", "words 3"]
    assert [one.preview for one in few] == ["words 2", "words 3"]
    assert [one.preview for one in newest] == ["words 3", "words 2"]
    assert [(one.at, one.scope) for one in heard_of] == [(one.at, 7) for one in messages(3)[1:]]
    assert list(trusts) == []
    assert isinstance(waiting[0].at, datetime)


def belief(key: str = "ana-is-reliable", **changes: Any) -> Belief:
    """Return a belief from the channel's cycle."""
    values: dict[str, Any] = {
        "key": key,
        "value": "Ana delivers.",
        "rationale": "Thrice.",
        "source_cycle": 1,
        "created_at": NOW,
        "peer_id": ANA,
        "sources": (OPS_AUDIENCE,),
        "audience": OPS_AUDIENCE,
        "evidence": (1, 2),
    }
    return Belief(**(values | changes))


def record(cycle: int = 1, **changes: Any) -> Reflection:
    """Return a cycle's record."""
    values: dict[str, Any] = {
        "cycle": cycle,
        "at": NOW + timedelta(hours=cycle),
        "trigger": "timer",
        "audience": OPS_AUDIENCE,
        "outcome": "done",
        "duration_s": 1.5,
        "summary": f"summary {cycle}",
        "sources": (OPS_AUDIENCE,),
    }
    return Reflection(**(values | changes))


def reflected(cycle: int = 1, **changes: Any) -> Reflected:
    """Return a cycle's changes."""
    return Reflected(**({"record": record(cycle)} | changes))


def judged(trust: int = 2, peer: str = ANA, **changes: Any) -> Proposal:
    """Return an assessment from a cycle."""
    values: dict[str, Any] = {"peer_id": peer, "trust": trust, "rationale": "Because.", "sources": (OPS_AUDIENCE,)}
    return Proposal(**(values | changes))


@case("M110", "a cycle is applied whole: assessments, beliefs, lessons, directives, tuning and its record")
async def _(ground: Ground) -> None:
    told = heard("follow_up Ana", key="cortex:1:0", at=OPS, kind=Kind.DIRECTIVE, origin=Origin.INTERNAL, owes=False)
    lesson = Lesson(
        key="k", value="v", audience=OPS_AUDIENCE, first_at=NOW - timedelta(days=2), last_at=NOW, affirmed=3
    )
    changed = reflected(
        proposals=(judged(),),
        put=(belief(),),
        lessons=(lesson,),
        directives=(Directive(peer_id=ANA, action="ask", text="t", perception=told),),
        seen=(ANA,),
        upto=10**6,
        tuned=(Tuned(trigger="timer", base=30.0, value=37.5, useful=(True, False), cycles=2),),
    )
    async with awake(ground) as store:
        await talk(store, *messages(3, at=OPS))
        recorded = await store.ledger.reflect(changed)
        grounds = store.ledger.grounds(OPS_AUDIENCE, [ANA], 10)
        pending = await store.inbox.oldest(OPS)
        assert store.ledger.unreflected(10) == []
        assert store.ledger.latest_trust() == {ANA: 2}
    assert [one.trust for one in recorded.assessments] == [2]
    assert grounds.beliefs == (belief(),)
    assert grounds.lessons == (lesson,)
    assert (grounds.summary, grounds.cycle) == ("summary 1", 2)
    assert grounds.tuned == changed.tuned
    assert grounds.peers[0].directed_at == changed.record.at
    assert pending is not None
    assert pending.perception.key == "cortex:1:0"


@case("M111", "a cycle is applied once, however often it is handed over")
async def _(ground: Ground) -> None:
    changed = reflected(proposals=(judged(),), put=(belief(),))
    async with awake(ground) as store:
        await talk(store, *messages(1, at=OPS))
        await store.ledger.reflect(changed)
        again = await store.ledger.reflect(replace(changed, put=(belief("another"),)))
        peer = store.ledger.query_peer(ANA, OPS_AUDIENCE)
        grounds = store.ledger.grounds(OPS_AUDIENCE, [ANA], 10)
    assert again.assessments == ()
    assert peer is not None
    assert peer.trajectory == (2,)
    assert [one.key for one in grounds.beliefs] == ["ana-is-reliable"]


@case("M112", "an assessment that cannot be written falls alone")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await talk(store, *messages(1, at=OPS))
        recorded = await store.ledger.reflect(reflected(proposals=(judged(peer=BEN), judged()), put=(belief(),)))
        grounds = store.ledger.grounds(OPS_AUDIENCE, [ANA], 10)
    assert set(recorded.failed) == {BEN}
    assert [one.peer_id for one in recorded.assessments] == [ANA]
    assert len(grounds.beliefs) == 1


@case("M113", "a cycle takes up its own audience's interactions, of the peers that it saw, up to where it looked")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await talk(store, *messages(2), *messages(2, at=OPS), *messages(1, person=BEN, at=OPS, first=7))
        upto = store.ledger.grounds(OPS_AUDIENCE, [ANA], 10).upto
        await talk(store, *messages(1, at=OPS, first=8))
        await store.ledger.reflect(reflected(seen=(ANA,), upto=upto))
        waiting = store.ledger.unreflected(10)
    assert [(one.peer_id, one.audience, one.preview) for one in waiting] == [
        (ANA, private(ANA), "words 1"),
        (ANA, private(ANA), "words 2"),
        (BEN, OPS_AUDIENCE, "words 7"),
        (ANA, OPS_AUDIENCE, "words 8"),
    ]


@case("M114", "a cycle reads only what its audience may see; the whole set is there for counting alone")
async def _(ground: Ground) -> None:
    secret = belief("secret", sources=(private(ANA),), audience=private(ANA))
    async with awake(ground) as store:
        await talk(store, *messages(2), *messages(2, at=OPS, first=3))
        await store.people.know_members(OPS_AUDIENCE, [ANA, BEN], NOW)
        await store.ledger.reflect(
            Reflected(record=record(1, audience=private(ANA), sources=(private(ANA),)), put=(secret,))
        )
        channel = store.ledger.grounds(OPS_AUDIENCE, [ANA], 10)
        own = store.ledger.grounds(private(ANA), [ANA], 10)
    assert (channel.beliefs, channel.summary) == ((), "")
    assert channel.every_belief == (secret,)
    assert [one.preview for one in channel.peers[0].timeline] == ["words 3", "words 4"]
    assert channel.peers[0].conversation == OPS
    assert (own.beliefs, own.summary) == ((secret,), "summary 1")
    assert [one.preview for one in own.peers[0].timeline] == ["words 1", "words 2", "words 3", "words 4"]
    assert own.peers[0].conversation == DM


@case("M115", "the owner's hand on a belief holds against a cycle that was under way")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.ledger.reflect(reflected(1, put=(belief("a"), belief("b"), belief("c"))))
        assert await store.ledger.set_belief("a", "dispute") == 1
        assert await store.ledger.set_belief("b", "pin") == 1
        assert await store.ledger.set_belief("c", "delete") == 1
        assert await store.ledger.set_belief("nothing", "pin") == 0
        later = belief("a", value="Again."), belief("b", source_cycle=2)
        await store.ledger.reflect(reflected(2, put=later, gone=(("a", OPS_AUDIENCE), ("b", OPS_AUDIENCE))))
        kept = {one.key: one for one in store.ledger.grounds(OPS_AUDIENCE, [], 10).every_belief}
    assert {key: one.state for key, one in kept.items()} == {"a": "disputed", "b": "pinned"}
    assert kept["a"].value == "Ana delivers."


@case("M116", "history keeps the newest cycles, failed ones too, and its numbers only grow")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        for cycle in range(1, 8):
            await store.ledger.keep_reflection(record(cycle, outcome="timeout", summary=""), 5)
        await store.ledger.reflect(reflected(8, history_size=5))
        grounds = store.ledger.grounds(OPS_AUDIENCE, [], 10)
    assert grounds.cycle == 9
    assert grounds.summary == "summary 8"


@case("M117", "a call that belongs to no turn is booked once, with its last figures, and its dollars count")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        made: Call = call(cost_usd=0.25, purpose="cortex")
        store.turns.book("cortex:1", call(cost_usd=0.75, purpose="cortex"), NOW)
        store.turns.book("cortex:1", made, NOW)
        store.turns.book("cortex:2", made, NOW)
        await store.ledger.set_belief("nothing", "pin")
        assert store.turns.spent_since(NOW) == 0.5


@case(
    "M118",
    "what was to be done by a day is handled once as overdue, without its words; what ended or is forgotten never",
)
async def _(ground: Ground) -> None:
    told = messages(3, at=OPS)
    async with awake(ground) as store:
        for n, perception in enumerate(told):
            matter = MatterOpened(person=ANA, text=f"report {n}", when=NOW.date() + timedelta(days=n))
            await exchange(store, perception, acts=(matter,))
        first, second, third = store.ledger.open_promises(NOW)
        await exchange(store, messages(1, at=OPS, first=4)[0], acts=(MatterClosed(matter=second.id),))
        await store.ledger.reflect(reflected(overdue=(first.id,)))
        await exchange(store, messages(1, person=BEN, at=OPS, first=5)[0])
        await store.people.link(ANA, BEN)
        assert [one.what for one in store.ledger.open_promises(NOW)] == [third.what]
        assert store.ledger.open_promises(NOW + timedelta(days=33)) == []
        assert (third.what, third.overdue_at.isoformat()) == (
            "report 2",
            f"{NOW.date() + timedelta(days=3)}T12:00:00+00:00",
        )
