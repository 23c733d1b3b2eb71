"""Life cases: what a start finds, and what a stop leaves."""

from datetime import timedelta

from contracts.store.ground import BEN, DM, NOW, OPS, Ground, awake, case, exchange, heard, recalled, thought


@case("M12", "a fresh start names every conversation with something unfinished, oldest first")
async def _(ground: Ground) -> None:
    async with awake(ground, clean=False) as store:
        await store.inbox.accept((heard(at="slack:T1:D-late:"),), NOW + timedelta(minutes=2))
        await store.inbox.accept((heard(at=DM),), NOW + timedelta(minutes=1))
        intent = thought(await recalled(store, heard(at=OPS, person=BEN)), "Half said.")
        await store.turns.commit(intent)
        await exchange(store, heard(at="slack:T1:D-done:"))
    store = ground.make()
    waiting = await store.start("boot-2", NOW)
    await store.close(clean=True)
    assert set(waiting.conversations) == {DM, OPS, "slack:T1:D-late:"}
    assert waiting.conversations.index(DM) < waiting.conversations.index("slack:T1:D-late:")


@case("M13", "a start knows whether the last stop was in good order; the first start has none before it")
async def _(ground: Ground) -> None:
    found = []
    for number, clean in enumerate((True, False, True, True)):
        store = ground.make()
        found.append((await store.start(f"boot-{number}", NOW)).was_clean)
        await store.close(clean=clean)
    assert found == [True, True, False, True]


@case("M14", "a store that is closed stays closed: closing twice is nothing")
async def _(ground: Ground) -> None:
    store = ground.make()
    await store.start("boot-1", NOW)
    await store.close(clean=True)
    await store.close(clean=True)
