"""Gaps: missed messages are found in order. Long replies: durable parts, sent in order, looked up and never sent blindly."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from claudius.cognition import turn
from claudius.errors import AdapterRefused, DeliveryRefused, DeliveryUnknown, StoreAway
from claudius.home import Home
from claudius.intent import Utterance
from claudius.memory.outbox import OutboxStore
from claudius.perception import Kind, Perception, private, shared
from claudius.providers.scripted import Scripted
from claudius.runtime import delivery, lanes
from claudius.runtime.adapter import Accept, Gap, Swept
from claudius.runtime.control import connect
from claudius.testing.alive import alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from ear import echo

DM, OPS = "rehearsal:t:dm-ana:", "rehearsal:t:ops:1"
ANA = "rehearsal:t:ana"


class Stumbling(RehearsalAdapter):
    """A network whose first sweep raises an unexpected error."""

    stumbled = False

    async def catch_up(self, gap: Gap) -> AsyncIterator[Swept]:
        """Return what was missed, from the second call on."""
        if not self.stumbled:
            self.stumbled = True
            raise KeyError("author")
        async for swept in super().catch_up(gap):
            yield swept


class Lasting(RehearsalAdapter):
    """A network whose history can be read again and again."""

    history: Sequence[Perception] = ()

    async def catch_up(self, gap: Gap) -> AsyncIterator[Swept]:
        """Return the whole history."""
        self.missed = list(self.history)
        async for swept in super().catch_up(gap):
            yield swept


def said(n: int, conversation: str = DM) -> Perception:
    """Return the n-th message that was said while no one listened."""
    return Perception(
        key=f"rehearsal:missed-{n}",
        conversation=conversation,
        audience=private(ANA) if conversation == DM else shared(conversation),
        person=ANA,
        name="Ana",
        text=f"m{n}",
        at=datetime.now(UTC),
        position=f"{n:020d}",
        kind=Kind.MESSAGE if conversation == DM else Kind.MENTION,
    )


async def test_what_was_missed_is_answered_in_its_order_before_what_came_live(home: Home) -> None:
    """A conversation waits for its history: the sweep's messages come first, as they were said first."""
    network = RehearsalAdapter(missed=[said(1), said(2), said(3, OPS)])
    network._said = 10

    async with alive(home, Scripted(default=echo), network=network) as soul:
        await network.hear("live")
        seen = await soul.until_said(4)

    assert [one.text for one in seen if one.conversation == DM] == ["re m1", "re m2", "re live"]
    assert [one.text for one in seen if one.conversation == OPS] == ["re m3"]


async def test_what_was_missed_was_heard_at_last(home: Home) -> None:
    """`status` no longer lists a network as unheard once its messages are answered."""
    network = RehearsalAdapter(missed=[said(1)])

    async with alive(home, Scripted(default=echo), network=network) as soul:
        await network.until_visible(1)
        async with connect(home.socket) as connection:
            await connection.send({"op": "status"})
            status = await connection.receive()
        await soul.idle()

    assert status is not None
    assert [one["last_inbound_s"] is None for one in status["adapters"]] == [False]


async def test_a_sweep_that_falls_is_not_the_last(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """An adapter's own error ends one sweep, with a line in the log, and not the later ones."""
    network = Stumbling(missed=[said(1)])
    monkeypatch.setattr("claudius.runtime.networks.AGAIN_S", 0.0)

    async with alive(home, Scripted(default=echo), network=network) as soul:
        seen = await soul.until_said(1)

    assert [one.text for one in seen] == ["re m1"]
    assert network.stumbled


async def test_a_sweep_while_the_store_is_away_is_not_the_last(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be stored is read again soon after, not at the next sweep of the hour."""
    monkeypatch.setattr("claudius.runtime.networks.FELL_S", 0.01)
    network, told = Lasting(), list[str]()

    async with alive(home, Scripted(default=echo), network=network) as soul:
        marks = soul.mind.store.inbox.marks

        async def away(name: str) -> Mapping[str, str]:
            """Fail once."""
            told.append(name)
            network.history = [said(1)]
            if len(told) == 1:
                raise StoreAway("the server is away")
            return await marks(name)

        monkeypatch.setattr(soul.mind.store.inbox, "marks", away)
        network.link.look_back()
        await soul.until_said(1)

    assert len(told) > 1


async def test_what_somebody_said_who_is_being_erased_is_read_again_later(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep takes what the others said, moves no mark past what it left out, and comes back for it."""
    network = Lasting(audiences={"shared:rehearsal:t:ops": (ANA,)})
    monkeypatch.setattr("claudius.runtime.networks.AGAIN_S", 0.05)

    async with alive(home, Scripted(default=echo), network=network) as soul:
        soul.server._forgetting.frozen = frozenset({ANA})
        network.history = [said(1), replace(said(2, OPS), person="rehearsal:t:ben")]
        network.link.deaf()
        await network.hear("then", person="ben")  # it is connected again
        await network.until_visible(2)
        marks = await soul.mind.store.inbox.marks("rehearsal")
        soul.server._forgetting.frozen = frozenset()
        seen = await soul.until_said(3)

    assert "t:dm-ana" not in marks
    assert sorted(one.text for one in seen) == ["re m1", "re m2", "re then"]


async def test_the_members_of_a_channel_are_asked_before_a_turn_there_and_after_each_join(home: Home) -> None:
    """The audience rule needs to know who can see the place now."""
    network = RehearsalAdapter(audiences={"shared:rehearsal:t:ops": (ANA,)})

    async with alive(home, Scripted(default=echo), network=network) as soul:
        await network.hear("one", conversation=OPS, is_shared=True)
        await network.until_visible(1)
        await network.hear("two", conversation=OPS, is_shared=True)
        await network.until_visible(2)
        await network.hear("", conversation=OPS, is_shared=True, kind=Kind.JOIN)
        await network.hear("three", conversation=OPS, is_shared=True)
        await soul.until_said(3)

    assert network.asked == ["shared:rehearsal:t:ops"] * 2


async def test_what_is_only_overheard_is_kept_and_costs_no_call(home: Home) -> None:
    """Talk in a followed channel is kept in working memory; no model is asked and nothing is said."""
    network, voice = RehearsalAdapter(), Scripted(default=echo)

    async with alive(home, voice, network=network, settings={"CLAUDIUS_RUNTIME_FOLLOW": "listen"}) as soul:
        await network.hear("between us", conversation=OPS, is_shared=True, kind=Kind.MESSAGE)
        await network.hear("soul?", conversation=OPS, is_shared=True)
        await soul.until_said(1)

    assert len(voice.requests) == 1
    assert "between us" in repr(voice.requests[0].history)


async def test_a_network_that_refuses_us_for_good_ends_the_process_where_it_is_the_last(home: Home) -> None:
    """If the last network refuses us for good, the process exits with 78 and the setting's name."""

    class Refused(RehearsalAdapter):
        """A network with a bad token."""

        async def listen(self, accept: Accept) -> None:
            """Raise the refusal."""
            del accept
            raise AdapterRefused("rehearsal", "REHEARSAL_TOKEN", "invalid_auth", "put a new one into .env")

    async with alive(home, Scripted(default=echo), network=Refused()) as soul:
        with pytest.raises(AdapterRefused, match="REHEARSAL_TOKEN: invalid_auth"):
            await asyncio.wait_for(soul.server.wait(), 20)


async def test_a_network_that_is_there_is_ready(home: Home) -> None:
    """`ready` returns once the first try of each network has ended."""
    async with alive(home, Scripted(default=echo)) as soul, asyncio.timeout(20):
        await soul.server.ready()


async def test_a_listener_that_is_ended_before_it_listens_holds_no_lane(home: Home) -> None:
    """The role is lost while the others are asked to wait: this process may answer there again."""
    asked = asyncio.Event()

    async def hold_back(_: Any) -> None:
        """Wait for a server that does not answer."""
        asked.set()
        await asyncio.Event().wait()

    async with alive(home, Scripted(default=echo)) as soul:
        networks = soul.server._networks
        networks._hold_back = hold_back
        hearing = asyncio.create_task(networks._hear(RehearsalAdapter(name="other")))
        await asked.wait()
        during = list(soul.server._lanes.unread)
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)
        after = list(soul.server._lanes.unread)

    assert "other" in during
    assert "other" not in after


async def test_a_listener_that_lost_its_role_and_has_it_again_reads_what_it_missed(home: Home) -> None:
    """Its lanes open with the history: what others would have to wait for is no longer than the reading."""
    network = Lasting()

    async with alive(home, Scripted(default=echo), network=network) as soul:
        await soul.idle()
        networks, name = soul.server._networks, network.name
        await networks._roles.close(f"listen/{name}")
        network.history = [said(1)]
        hearing = asyncio.create_task(networks._hear(network))
        await soul.until_said(1)
        after = list(soul.server._lanes.unread)
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)

    assert after == []


PARAGRAPHS = [f"Paragraph {n} " + "of a long reply " * 12 for n in range(5)]
LONG = "\n\n".join(paragraph.strip() for paragraph in PARAGRAPHS)


def say(text: str) -> Scripted:
    """Return a provider that always says this."""
    return Scripted(default=f"<internal_monologue>hm</internal_monologue><external_dialogue>{text}</external_dialogue>")


async def test_a_long_reply_is_said_in_posts_and_remembered_whole(home: Home) -> None:
    """Each post fits the network's limit, in order; working memory keeps one entry with the whole text."""
    network = RehearsalAdapter(post_chars=300)

    async with alive(home, say(LONG), network=network) as soul:
        await network.hear("tell me")
        await soul.until_said(5)
        entries = (soul.records().conversation(DM) or {})["entries"]

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
        await soul.until_said(5)

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
        await soul.until_said(1)

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
        await soul.until_said(2)
        entries = (soul.records().conversation(DM) or {})["entries"]

    said = "".join(one.text for one in network.visible)
    assert (said, len(network.visible)) == (LONG[: len(said)], 2)
    assert [one["content"] for one in entries if one["entry_type"] == "externalDialog"] == [said]


async def test_a_reply_beyond_eight_posts_ends_in_a_visible_mark(home: Home) -> None:
    """The cut part is not remembered as said, and the turn is flagged."""
    network = RehearsalAdapter(post_chars=200)

    async with alive(home, say(LONG * 4), network=network) as soul:
        await network.hear("tell me")
        await soul.until_said(8)
        with closing(soul.records()) as kept:
            (said,) = [one for one in (kept.conversation(DM) or {})["entries"] if one["entry_type"] == "externalDialog"]

    assert len(network.visible) == 8
    assert network.visible[-1].text.endswith("…")
    assert said["content"] == "".join(one.text for one in network.visible)
