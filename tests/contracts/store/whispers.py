"""Whisper cases: a whisper is felt once, where it may be shown, and each daimon is asked as its record says."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from claudius.memory.recall import RecallLimits
from claudius.memory.whispers import Whisper
from claudius.perception import SELF, private
from contracts.store.ground import ANA, BEN, DM, NOW, Ground, awake, case, heard, recalled, taken, thought

MODES = {"kothar": "whisper"}
LISTENING = RecallLimits(ttl_hours=72, daimons=MODES)


def whisper(text: str = "They wait.", **changes: Any) -> Whisper:
    """Return a whisper that may be felt everywhere for an hour."""
    made = Whisper(
        daimon="kothar", text=text, transport="manual", sources=(SELF,), at=NOW, expires_at=NOW + timedelta(hours=1)
    )
    return replace(made, **changes)


@case("W1", "a whisper is felt in one turn, used by its commit, and free again if that turn comes to nothing")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        number = await store.whispers.keep_whisper(whisper())
        first = await recalled(store, heard(), limits=LISTENING)
        beside = await recalled(store, heard(n=2, person=BEN, at="slack:T1:D-ben:"), limits=LISTENING)
        store.turns.release(first.turn)
        again = await recalled(store, heard(n=3, person=BEN, at="slack:T1:D-ben-2:"), limits=LISTENING)
        await store.turns.commit(thought(again, "So.", whispers=(number,)))
        store.turns.release(again.turn)
        after = store.whispers.surfacing(heard(), NOW, MODES)
    assert [one.whisper for one in first.intuitions] == [number]
    assert beside.intuitions == ()
    assert [one.text for one in again.intuitions] == ["They wait."]
    assert after == ""


@case("W2", "a whisper is felt only where all its sources may be shown, until it expires, by a daimon that is heard")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.whispers.keep_whisper(whisper("Of Ana.", sources=(private(ANA),)))
        other = heard(person=BEN, at="slack:T1:D-ben:")
        own, theirs = [store.whispers.surfacing(one, NOW, MODES) for one in (heard(), other)]
        late = store.whispers.surfacing(heard(), NOW + timedelta(hours=1), MODES)
        silent = store.whispers.surfacing(heard(), NOW, {"kothar": "off"})
        await store.whispers.set_mode("kothar", "off", DM)
        here = store.whispers.surfacing(heard(), NOW, MODES)
    assert (own, theirs, late, silent, here) == ("Of Ana.", "", "", "", "")


@case("W3", "a newer whisper of a daimon and of the same sources takes the place of the one that waits")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.whispers.keep_whisper(whisper("one"))
        await store.whispers.keep_whisper(whisper("two"))
        pending = await taken(store, heard())
        found = await store.turns.recall(pending, nonce="n", now=NOW, limits=LISTENING)
    assert [one.text for one in found.intuitions] == ["two"]


@case("W4", "the record of asking a daimon, its failures and its mode are there in the next process")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.whispers.asked("kothar", NOW)
        await store.whispers.fared("kothar", failures=2, rests_until=NOW + timedelta(minutes=5), reason="refused")
        await store.whispers.set_mode("kothar", "both")
        await store.whispers.keep_whisper(whisper())
    async with awake(ground, "boot-2") as store:
        record = store.whispers.standing("kothar", NOW)
        unknown = store.whispers.standing("nobody", NOW)
        mode = store.whispers.mode_of("kothar", DM, "off")
    assert (record.asked_at, record.failures, record.rests_until) == (NOW, 2, NOW + timedelta(minutes=5))
    assert (record.reason, record.mode, record.today, record.has_active) == ("refused", "both", 1, True)
    assert record.lately == ("They wait.",)
    assert (unknown.asked_at, unknown.failures, unknown.mode, unknown.lately) == (None, 0, "", ())
    assert mode == "both"


@case("W5", "of many whispers a strong one is felt first, then the oldest; two at most")
async def _(ground: Ground) -> None:
    listening = RecallLimits(ttl_hours=72, daimons=dict.fromkeys(("kothar", "beata", "cara"), "whisper"))
    async with awake(ground) as store:
        await store.whispers.keep_whisper(whisper("First."))
        await store.whispers.keep_whisper(whisper("Second.", daimon="beata"))
        await store.whispers.keep_whisper(whisper("Now!", daimon="cara", influence="strong"))
        known = await recalled(store, heard(), limits=listening)
    assert [one.text for one in known.intuitions] == ["Now!", "First."]
