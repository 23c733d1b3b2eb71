"""Every adapter keeps one contract, whatever its network; what they share: caches, and ends that come together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from both import Side
from claudius.adapters import caches as reached
from claudius.adapters.caches import FRESH_S, STALE_S, Lookups, MarkedChannel, Reached, keep, swept
from claudius.adapters.chat_adapter import either
from claudius.errors import DeliveryUnknown
from claudius.runtime.adapter import Swept
from claudius.testing.adapter_contract.small import RehearsalStage, TerminalStage
from claudius.testing.check_adapter import CASES, Case, check_adapter


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_every_adapter_keeps_the_contract(side: Side, case: Case) -> None:
    """This covers A1 to A30 of the chat design, as far as the network can."""
    if lacking := case.needs - side.stage.can:
        pytest.skip(f"no {', '.join(sorted(lacking))} there")

    await check_adapter(side.make, side.stage, case)


@pytest.mark.parametrize("small", [TerminalStage, RehearsalStage])
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_the_small_networks_keep_it_too(small: type[TerminalStage | RehearsalStage], case: Case) -> None:
    """The terminal and the in-memory network show what a third-party adapter has to do."""
    stage = small()
    if lacking := case.needs - stage.can:
        pytest.skip(f"no {', '.join(sorted(lacking))} there")

    await check_adapter(stage.make, stage, case)

    await stage.close()


def test_each_case_has_a_number_of_its_own() -> None:
    """The numbers are those of the design."""
    assert len({case.number for case in CASES}) == len(CASES)


async def losing(lost: list[str]) -> None:
    """Lose one cancellation, as `asyncio.wait_for` does on Python 3.11 if its work ends in the same moment."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    lost.append("a cancellation")
    await asyncio.Event().wait()


async def test_a_lost_cancellation_does_not_keep_an_adapter_from_beginning_anew() -> None:
    """A25: where the watch wants a fresh client, the old one ends, though it missed that it should."""
    lost: list[str] = []

    async with asyncio.timeout(20):
        await either(losing(lost), asyncio.sleep(0), "discord")

    assert lost == ["a cancellation"]


async def test_a_lost_cancellation_does_not_keep_an_adapter_from_ending() -> None:
    """A30: who is cancelled while both run ends both."""
    lost: list[str] = []
    running = asyncio.create_task(either(losing(lost), losing(lost), "discord"))
    await asyncio.sleep(0)

    running.cancel()
    async with asyncio.timeout(20):
        await asyncio.gather(running, return_exceptions=True)

    assert running.cancelled()
    assert lost == ["a cancellation"] * 2


def test_a_live_message_confirms_nothing_before_it() -> None:
    """Only the first live message and what a sweep read confirm everything earlier."""
    channel = Reached()
    for ts in ("3", "5", "7"):
        channel.known("C1", ts)

    assert [channel.has("C1", ts) for ts in "234567"] == [True, True, False, True, False, True]
    channel.read("C1", "5")
    assert [channel.has("C1", ts) for ts in "234567"] == [True, True, True, True, False, True]
    assert channel.newest == {"C1": "7"}
    assert not channel.has("C2", "1")


def test_the_marks_of_an_unread_channel_are_bounded() -> None:
    """The older half then counts as read: memory is bounded, and the hourly sweep finds a hole in it."""
    channel = Reached()
    for n in range(3 * reached.MOST):
        channel.known("C1", f"{n:09d}")

    assert max(map(len, channel._came.values())) <= reached.MOST
    assert channel.has("C1", f"{3 * reached.MOST - 1:09d}")
    assert not channel.has("C1", f"{3 * reached.MOST:09d}")


async def test_a_lookup_is_made_once_while_fresh_and_used_until_stale() -> None:
    """This holds for any number of callers. If the network does not answer, the last answer is used for a day."""
    now_s, asked = 0.0, []

    async def ask(key: str) -> str | None:
        """Answer the first time only."""
        asked.append(key)
        await asyncio.sleep(0)
        return "Ana" if len(asked) == 1 else None

    names: Lookups[str] = Lookups(lambda: now_s)
    await asyncio.gather(*(names.refresh(["U1"], ask, 5.0) for _ in range(3)))
    await names.refresh(["U1"], ask, 5.0)
    once = list(asked)
    now_s = FRESH_S
    await names.refresh(["U1"], ask, 5.0)
    later = names.get("U1")
    now_s = STALE_S

    assert (once, asked) == (["U1"], ["U1", "U1"])
    assert (later, names.get("U1")) == ("Ana", None)


async def test_a_late_lookup_does_not_block_anyone() -> None:
    """The lookup goes on in the background, and ends with the close."""
    started = asyncio.Event()

    async def ask(key: str) -> str | None:
        """Never answer."""
        started.set()
        await asyncio.Event().wait()
        return key

    names: Lookups[str] = Lookups()
    await names.refresh(["U1"], ask, 0.0)
    await started.wait()
    await names.close()

    assert names.get("U1") is None
    assert not names._asking


def test_a_full_cache_drops_its_oldest_entry() -> None:
    """An entry that is stored again counts as the newest."""
    kept: dict[str, int] = {}
    for key in ("a", "b", "a", "c"):
        keep(kept, key, len(kept), most=2)

    assert list(kept) == ["a", "c"]


async def test_a_network_that_is_down_is_not_asked_for_each_channel() -> None:
    """One channel that fails lets the others be read; at the second failure of the network itself the sweep ends."""
    asked: list[str] = []

    async def down(place: MarkedChannel) -> AsyncIterator[Swept]:
        asked.append(place.channel)
        raise DeliveryUnknown("503")
        yield

    with pytest.raises(DeliveryUnknown):
        _ = [one async for one in swept([MarkedChannel("T", name, "0") for name in "abc"], down)]
    assert asked == ["a", "b"]
