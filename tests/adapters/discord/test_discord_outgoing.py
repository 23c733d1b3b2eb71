"""Posting on Discord, part by part: posted once, refused by code, delayed, or found again."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from claudius.adapters.discord.adapter import DiscordAdapter
from claudius.adapters.discord.gateway import tells_wait
from claudius.adapters.discord.outgoing import nonce
from claudius.errors import LONGEST_DELAY_S, DeliveryLater, DeliveryRefused, DeliveryUnknown
from claudius.intent import Utterance
from discord_side import Make, said
from ear import Ear
from lab.loopback.discord.state import ANA, BOT_USER, CHANNEL, DM, GUILD
from lab.loopback.discord.world import DiscordWorld

LONG_AGO = timedelta(hours=1)


def utterance(conversation: str = f"discord:@me:{DM}:", **changes: Any) -> Utterance:
    """Return one part of a reply."""
    values: dict[str, Any] = {
        "key": "6f0b7a52-7f1f-5d3b-9a36-5a0b8f2e41c7",
        "turn": "t1",
        "conversation": conversation,
        "body": "Hello.",
    }
    return Utterance(**(values | changes))


async def test_receipts_follow_the_words_in_small_text(world: DiscordWorld, ear: Ear, adapter: DiscordAdapter) -> None:
    """One message: the words, a blank line, and a line an act; it is found again by the same text."""
    said_now = utterance(receipts=("⏰ Fri 27 Nov 2026, 9:00 Europe/Berlin · call · p1", "✎ f7"))

    posted = await adapter.speak(said_now)

    assert await said(world) == [(DM, "Hello.\n\n-# ⏰ Fri 27 Nov 2026, 9:00 Europe/Berlin · call · p1\n-# ✎ f7")]
    assert await adapter.find(said_now, decided_at=datetime.now(UTC) - LONG_AGO) == posted


def test_a_nonce_is_the_beginning_of_the_key() -> None:
    """A nonce has at most 25 characters, is the same for the same key, and differs for different keys."""
    keys = ["6f0b7a52-7f1f-5d3b-9a36-5a0b8f2e41c7", "6f0b7a52-7f1f-5d3b-9a36-5a0b8f2e41c8", "any key", "another key"]

    nonces = [nonce(key) for key in keys]

    assert len({*nonces[:1], *nonces[2:]}) == 3
    assert all(0 < len(one) <= 25 for one in nonces)
    assert nonces == [nonce(key) for key in keys]


async def test_a_person_who_accepts_no_messages_is_a_refusal(
    world: DiscordWorld, ear: Ear, adapter: DiscordAdapter
) -> None:
    """Code 50007 (the person accepts no direct messages) is a refusal."""
    await world.add_user("400000000000000003", "shy", takes_dms=False)
    channel = await world.open_dm("400000000000000003")

    with pytest.raises(DeliveryRefused, match="50007"):
        await adapter.speak(utterance(f"discord:@me:{channel}:"))


@pytest.mark.parametrize("asked", [1e12, -5.0, "soon", "nan"])
async def test_a_rate_limit_that_names_no_possible_wait_is_a_refusal_all_the_same(
    world: DiscordWorld, ear: Ear, adapter: DiscordAdapter, asked: float | str
) -> None:
    """A 429 means that nothing was applied, whatever wait it names. The wait is bounded."""
    await world.fault("create_message", "rate_limit", retry_after_s=asked, times=9)

    with pytest.raises(DeliveryLater) as later:
        await adapter.speak(utterance())

    assert later.value.after_s is not None
    assert 0 < later.value.after_s <= LONGEST_DELAY_S


@pytest.mark.parametrize(
    ("body", "is_told"),
    [
        (b'{"retry_after": 1.5}', True),
        (b'{"retry_after": 1e12}', True),
        (b"<html>error code: 1015</html>", True),
        (b'{"retry_after": NaN}', False),
        (b'{"retry_after": Infinity}', False),
        (b'{"retry_after": -1}', False),
        (b'{"retry_after": null}', False),
        (b'{"message": "slow down"}', False),
        (b"[]", False),
    ],
)
def test_only_an_unreadable_rate_limit_body_is_rewritten(body: bytes, *, is_told: bool) -> None:
    """A rewritten answer would be taken for a post that may be visible."""
    assert tells_wait(body) is is_told


@pytest.mark.parametrize(("scope", "expected"), [("cloudflare", DeliveryLater), ("user", DeliveryUnknown)])
async def test_a_ban_and_a_fault_are_told_apart(
    world: DiscordWorld, ear: Ear, adapter: DiscordAdapter, scope: str, expected: type[Exception]
) -> None:
    """A ban page means that nothing was applied; a 503 means that the post may have been."""
    kind = {"cloudflare": "rate_limit", "user": "status"}[scope]
    await world.fault("create_message", kind, scope=scope, status=503)  # type: ignore[arg-type] - one of FAULTS

    with pytest.raises(expected):
        await adapter.speak(utterance())


async def test_a_part_waits_while_no_client_is_there(ear: Ear, adapter: DiscordAdapter, make: Make) -> None:
    """A client that is closed during a call has sent nothing, and so has one that does not listen yet: no fault."""
    await adapter._in().gateway.close()

    with pytest.raises(DeliveryLater):
        await adapter.speak(utterance())
    with pytest.raises(DeliveryLater):
        await adapter.find(utterance(), decided_at=datetime.now(UTC))
    with pytest.raises(DeliveryLater):
        await make().speak(utterance())


async def test_a_part_is_found_by_its_text_and_its_place_among_the_parts(
    world: DiscordWorld, ear: Ear, make: Make, adapter: DiscordAdapter
) -> None:
    """After a restart the second of two equal parts is not mistaken for the first."""
    trigger = await world.say(DM, ANA, "hello")
    one = utterance(key="one", answers=(f"discord:{trigger}",), body="Same. ", parts=2)
    other = utterance(key="other", answers=(f"discord:{trigger}",), body="Same. ", part=1, parts=2)
    receipt = await adapter.speak(one)
    adapter._places.spoken.clear()

    assert await adapter.find(one, decided_at=datetime.now(UTC) - LONG_AGO) == receipt
    assert await adapter.find(other, decided_at=datetime.now(UTC) - LONG_AGO) is None


async def test_an_equal_post_of_another_turn_is_not_mistaken_for_it(
    world: DiscordWorld, ear: Ear, adapter: DiscordAdapter
) -> None:
    """This holds as long as the process knows which of its posts belongs to which turn."""
    first = await world.say(DM, ANA, "coffee?")
    second = await world.say(DM, ANA, "tea?")
    await adapter.speak(utterance(key="coffee", answers=(f"discord:{first}",), body="Yes."))
    tea = utterance(key="tea", answers=(f"discord:{second}",), body="Yes.")

    assert await adapter.find(tea, decided_at=datetime.now(UTC)) is None


@pytest.mark.parametrize("is_hidden", [True, False])
async def test_a_history_that_cannot_be_read_proves_nothing(
    world: DiscordWorld, ear: Ear, adapter: DiscordAdapter, *, is_hidden: bool
) -> None:
    """§6: while the nonce is valid the part is posted again; later it waits, and is never posted blindly."""
    deny = "read_message_history" if is_hidden else "view_channel"
    message = await world.say(CHANNEL, ANA, f"<@{BOT_USER}> hello")
    await world.overwrite(CHANNEL, deny=[deny])  # type: ignore[list-item] - one of the permissions
    await world.until_heard()
    part = utterance(f"discord:{GUILD}:{CHANNEL}:{message}", answers=(f"discord:{message}",))

    assert await adapter.find(part, decided_at=datetime.now(UTC)) is None
    with pytest.raises(DeliveryRefused):
        await adapter.find(part, decided_at=datetime.now(UTC) - LONG_AGO)


async def test_a_failed_lookup_proves_nothing(world: DiscordWorld, ear: Ear, adapter: DiscordAdapter) -> None:
    """If the lookup fails, the part stays in doubt."""
    await world.fault("get_channel_messages", "status", status=503)

    with pytest.raises(DeliveryUnknown):
        await adapter.find(utterance(), decided_at=datetime.now(UTC))
