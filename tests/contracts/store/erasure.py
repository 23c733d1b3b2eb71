"""Erasure cases: nothing of an erased person is left, nothing of anybody else is lost, and it can be carried on."""

from claudius.memory.documents import Document
from claudius.memory.erasure import Undone
from claudius.perception import DeleteExtra, Kind, private
from claudius.psyche_types import Appraisal
from contracts.store.ground import ANA, BEN, DM, NOW, Ground, awake, case, exchange, heard, recalled

BENS = "slack:T1:D-ben:"


@case("E1", "an erased person is no one's id any more, and has no portrait, no words and no past")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await exchange(store, heard("a canary in a cage of words"))
        await store.documents.set_model(ANA, private(ANA), "of Ana", "note", "owner", NOW)
        before, _ = await store.erasure.everyone()
        erased = await store.erasure.erase([ANA])
        after, _ = await store.erasure.everyone()
        known = await recalled(store, heard("hello", n=2))
        left = store.documents.document(Document(ANA, private(ANA)))
    assert ANA in before
    assert ANA not in after
    assert DM in erased.conversations
    assert sum(erased.rows.values()) > 0
    assert (known.past, left) == ((), None)


@case("E2", "what others said and what is known of them stays; erasing once more changes nothing")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await exchange(store, heard("mine"))
        await exchange(store, heard("theirs", person=BEN, at=BENS))
        await store.documents.set_model(BEN, private(BEN), "of Ben", "note", "owner", NOW)
        await store.erasure.erase([ANA])
        again = await store.erasure.erase([ANA])
        people, _ = await store.erasure.everyone()
        portrait = store.documents.document(Document(BEN, private(BEN)))
        known = await recalled(store, heard("hello", n=2, person=BEN, at=BENS))
    assert again.conversations == ()
    assert BEN in people
    assert portrait == "of Ben"
    assert next(entry.content for turn in known.past for entry in turn.entries) == "theirs"


@case("E3", "what is searched for afterwards is that person's own words, less those that another says too")
async def _(ground: Ground) -> None:
    line = "the seventh lighthouse keeper counts gulls at noon"
    async with awake(ground) as store:
        await exchange(store, heard(line))
        probes = await store.erasure.probes([ANA])
        await store.erasure.erase([ANA])
        own = await store.erasure.narrowed(probes)
        await exchange(store, heard(line, n=3, person=BEN, at=BENS))
        shared = await store.erasure.narrowed(probes)
    assert probes.ids == (ANA,)
    assert any(line.startswith(piece) or piece in line for piece in own.excerpts)
    assert not any(piece in line for piece in shared.excerpts)


@case("E4", "what came from a deleted message is undone by any process, and what others said stays")
async def _(ground: Ground) -> None:
    taken_down = heard("", n=9, key="gone", kind=Kind.DELETE, owes=False, extra=DeleteExtra(of=heard(n=1).key))
    async with awake(ground, clean=False) as store:
        await exchange(store, heard("a canary in a cage"), "A canary sings.")
        await exchange(store, heard("good morning", n=2), "All is calm.")
        await store.inbox.amend(taken_down, NOW)
        is_noted = store.inbox.is_unsaid
    async with awake(ground, "boot-2") as store:
        first, second = await store.inbox.undo(), await store.inbox.undo()
        known = await recalled(store, heard("hello", n=3))
    lines = [entry.content for turn in known.past for entry in turn.entries]
    assert is_noted
    assert first.is_new
    assert second == Undone()
    assert not [line for line in lines if "canary" in line]
    assert "good morning" in lines


@case("E9", "how the soul took the erased person's words, whomever they were about, goes; how it took others' stays")
async def _(ground: Ground) -> None:
    took = {one: Appraisal(person=one, kind="hurtful") for one in (ANA, BEN)}
    async with awake(ground) as store:
        await exchange(store, heard("I am cross with Ben"), appraisals=(took[ANA], took[BEN]))
        await exchange(store, heard("so am I", person=BEN, at=BENS, n=2), appraisals=(took[BEN], took[ANA]))
        await store.erasure.erase([ANA])
        with store.core.snapshot() as db:
            left = [(row["person"], row["audience"]) for row in db.connection.execute("SELECT * FROM appraisal")]
    assert left == [(BEN, private(BEN))]
