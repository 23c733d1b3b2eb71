"""Long replies: split into posts on commit; each is a durable row, and they are sent in order."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from claudius.cognition import turn
from claudius.errors import DeliveryRefused, DeliveryUnknown, StoreAway
from claudius.home import Home
from claudius.intent import Utterance
from claudius.memory.outbox import OutboxStore
from claudius.providers.scripted import Scripted
from claudius.runtime import delivery, lanes
from claudius.testing.alive import alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter

PARAGRAPHS = [f"Paragraph {n} " + "of a long reply " * 12 for n in range(5)]
LONG = "\n\n".join(paragraph.strip() for paragraph in PARAGRAPHS)
DM = "rehearsal:t:dm-ana:"


def say(text: str) -> Scripted:
    """Return a provider that always says this."""
    return Scripted(default=f"<internal_monologue>hm</internal_monologue><external_dialogue>{text}</external_dialogue>")


async def test_a_long_reply_is_said_in_posts_and_remembered_whole(home: Home) -> None:
    """Each post fits the network's limit, in order; working memory keeps one entry with the whole text."""
    network = RehearsalAdapter(post_chars=300)

    async with alive(home, say(LONG), network=network) as soul:
        await network.hear("tell me")
        await network.until_visible(5)
        await soul.idle()
        with closing(soul.records()) as kept:
            entries = (kept.conversation(DM) or {})["entries"]

    assert [one.text.strip() for one in network.visible] == [paragraph.strip() for paragraph in PARAGRAPHS]
    assert [one["content"] for one in entries if one["entry_type"] == "externalDialog"] == [LONG]


async def test_a_post_has_a_length_that_reads_well_and_the_terminal_has_no_posts(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """POST_CHARS limits posts where the network would allow more; a place without a limit is never split."""
    monkeypatch.setattr(turn, "POST_CHARS", 600)
    short, whole = RehearsalAdapter(post_chars=10_000), RehearsalAdapter()

    async with alive(home, say(LONG), network=short) as soul:
        await short.hear("tell me")
        await short.until_visible(2)
        await soul.idle()
    async with alive(home, say(LONG), network=whole) as soul:
        await whole.hear("tell me")
        await whole.until_visible(1)
        await soul.idle()

    assert all(len(one.text) <= 600 for one in short.visible)
    assert [one.text for one in whole.visible] == [LONG]


async def test_a_post_that_may_be_visible_holds_back_the_next(home: Home) -> None:
    """O4: all parts are sent in order, without interruption, whatever happens to one of them."""
    network = RehearsalAdapter(post_chars=300, appears_s=0.01)
    network.faults.extend([(DeliveryUnknown("reset"), True), (DeliveryUnknown("reset"), False)])

    async with alive(home, say(LONG), network=network) as soul:
        await network.hear("tell me")
        await network.until_visible(5)
        await soul.idle()

    assert [one.text.strip() for one in network.visible] == [paragraph.strip() for paragraph in PARAGRAPHS]


async def test_a_post_whose_doubt_cannot_be_noted_is_not_repeated_without_a_look(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network and the store are cut off together, as by one cable: what may be visible is looked for first."""
    monkeypatch.setattr(delivery, "NOTE_AGAIN_S", 0.01)
    monkeypatch.setattr(lanes, "STUMBLE", lanes.Retry(0.01))
    network = RehearsalAdapter(appears_s=0.01)
    network.faults.append((DeliveryUnknown("reset"), True))
    delay, refusals = OutboxStore.delay, [StoreAway("cut off"), StoreAway("still")]

    async def cut_off(outbox: OutboxStore, *what: Any, unknown: bool = False) -> None:
        """Write nothing the first two times."""
        if refusals:
            raise refusals.pop()
        await delay(outbox, *what, unknown=unknown)

    monkeypatch.setattr(OutboxStore, "delay", cut_off)
    async with alive(home, say("Once."), network=network) as soul:
        await network.hear("tell me")
        await network.until_visible(1)
        await soul.idle()

    assert [one.text for one in network.visible] == ["Once."]
    assert network.looks


async def test_what_was_refused_half_way_is_remembered_as_far_as_it_was_said(home: Home) -> None:
    """Working memory claims nothing that was not said."""

    class Archived(RehearsalAdapter):
        """A network whose channel is archived after the second post."""

        async def speak(self, utterance: Utterance) -> str:
            """Refuse the third post."""
            if utterance.part == 2:
                raise DeliveryRefused("is_archived")
            return await super().speak(utterance)

    network = Archived(post_chars=300)

    async with alive(home, say(LONG), network=network) as soul:
        await network.hear("tell me")
        await network.until_visible(2)
        await soul.idle()
        with closing(soul.records()) as kept:
            entries = (kept.conversation(DM) or {})["entries"]

    said = "".join(one.text for one in network.visible)
    assert (said, len(network.visible)) == (LONG[: len(said)], 2)
    assert [one["content"] for one in entries if one["entry_type"] == "externalDialog"] == [said]


async def test_a_reply_beyond_eight_posts_ends_in_a_visible_mark(home: Home) -> None:
    """The cut part is not remembered as said, and the turn is flagged."""
    network = RehearsalAdapter(post_chars=200)

    async with alive(home, say(LONG * 4), network=network) as soul:
        await network.hear("tell me")
        await network.until_visible(8)
        await soul.idle()
        with closing(soul.records()) as kept:
            (said,) = [one for one in (kept.conversation(DM) or {})["entries"] if one["entry_type"] == "externalDialog"]

    assert len(network.visible) == 8
    assert network.visible[-1].text.endswith("…")
    assert said["content"] == "".join(one.text for one in network.visible)
