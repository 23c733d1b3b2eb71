"""Who can see a channel is asked of the network once, however many of its turns want to know; a change is never lost."""

import asyncio
from contextlib import closing
from datetime import UTC, datetime

from claudius.home import Home
from claudius.perception import Kind, Perception
from claudius.providers.scripted import Scripted
from claudius.runtime.access import Membership
from claudius.testing.alive import alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from claudius.tool import Onlookers

ANA, BEN, CHANNEL = "rehearsal:t:ana", "rehearsal:t:ben", "shared:rehearsal:t:c1"


class Slow(RehearsalAdapter):
    """A network that answers when a test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.audiences[CHANNEL] = (ANA, BEN)
        self.answers, self.is_asked = asyncio.Semaphore(0), asyncio.Event()

    async def members(self, audience: str) -> tuple[str, ...]:
        """Answer with the one who was there when it was asked."""
        found = tuple(await super().members(audience) or ())
        self.is_asked.set()
        await self.answers.acquire()
        return found


def said(thread: str) -> Perception:
    """Return what Ana says in a thread of the channel."""
    return Perception(
        key=thread, conversation=f"rehearsal:t:c1:{thread}", audience=CHANNEL, person=ANA, name="Ana", text="Hello.",
        at=datetime(2026, 1, 5, tzinfo=UTC), position=thread, kind=Kind.MENTION,
    )  # fmt: skip


async def test_two_turns_of_a_channel_ask_once(home: Home) -> None:
    """The turns of two threads that begin at once share one answer."""
    async with alive(home, Scripted()) as soul:
        network = Slow()
        known = Membership(soul.mind.store, {"rehearsal": network}, soul.mind.clock)
        network.answers.release()
        network.answers.release()
        await asyncio.gather(*(known.look(said(thread)) for thread in ("1", "2")))

    assert network.asked == [CHANNEL]


async def test_who_leaves_while_the_network_answers_is_gone_at_the_next_turn(home: Home) -> None:
    """An answer from before the change is not kept: the network is asked again, once."""
    async with alive(home, Scripted()) as soul:
        network = Slow()
        known = Membership(soul.mind.store, {"rehearsal": network}, soul.mind.clock)
        asking = asyncio.create_task(known.look(said("1")))
        await network.is_asked.wait()
        network.audiences[CHANNEL] = (ANA,)
        known.forget(CHANNEL)
        for _ in range(3):
            network.answers.release()
        await asking
        await known.look(said("2"))
        with closing(soul.records()) as records:
            rows = records._db.connection.execute("SELECT person FROM audience_member WHERE audience = ?", (CHANNEL,))
            found = {row[0] for row in rows}

    assert network.asked == [CHANNEL, CHANNEL]
    assert found == {ANA}


async def test_who_may_allow_a_tool_is_asked_of_the_network_anew(home: Home) -> None:
    """An owner who left a channel can allow nothing there; where the network does not answer, only who speaks is there."""
    async with alive(home, Scripted()) as soul:
        network = RehearsalAdapter()
        network.audiences[CHANNEL] = (ANA, BEN)
        known = Membership(soul.mind.store, {"rehearsal": network}, soul.mind.clock)
        await known.look(said("1"))
        before = await known.onlookers(CHANNEL, ANA, [BEN], anew=False)
        network.audiences[CHANNEL] = (ANA,)
        cached, after = [await known.onlookers(CHANNEL, ANA, [BEN], anew=anew) for anew in (False, True)]
        del network.audiences[CHANNEL]
        unlisted = await known.onlookers(CHANNEL, ANA, [ANA, BEN], anew=True)
        alone = await known.onlookers(f"private:{BEN}", "", [BEN], anew=True)

    assert before == Onlookers(people=frozenset({ANA, BEN}), owners=frozenset({BEN}))
    assert cached == before
    assert after == Onlookers(people=frozenset({ANA}))
    assert unlisted == Onlookers(owners=frozenset({ANA}))
    assert alone == Onlookers(people=frozenset({BEN}), owners=frozenset({BEN}))
