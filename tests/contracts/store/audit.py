"""Audit cases: what was done is kept and never edited, and a change of a file that no act tells of is found."""

from claudius.memory.audit import AuditEntry
from contracts.store.ground import ANA, NOW, Ground, awake, case, exchange, heard


@case("AU1", "the first comparison records nothing, the next one what changed and no act tells of")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        first = await store.audit.compare({"setting a": "1", "setting b": "1"}, NOW)
        await store.audit.note(AuditEntry(who=ANA, act="setting", target="a"), NOW)
        second = await store.audit.compare({"setting a": "2", "setting b": "2", "soul soul.md": "1"}, NOW)
        third = await store.audit.compare({"setting a": "2", "setting b": "2"}, NOW)
        last = await store.audit.compare({"setting a": "3", "setting b": "2"}, NOW)
    assert first == []
    assert second == ["setting b", "soul soul.md"]
    assert third == ["soul soul.md"]
    assert last == ["setting a"]


@case("AU2", "an erasure leaves the acts, and puts an alias for each id of the person")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await exchange(store, heard("mine"))
        await store.audit.note(AuditEntry(who=ANA, act="read", target=ANA), NOW)
        erased = await store.erasure.erase([ANA], {ANA: "erased:1"})
        people, _ = await store.erasure.everyone()
    assert erased.rows["audit"] == 2
    assert ANA not in people
