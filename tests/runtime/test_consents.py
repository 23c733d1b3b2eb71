"""Who decides what the soul asks to do, by a word: the first who may, once; everybody else is told alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from claudius.cognition.commit import card_of
from claudius.home import Home
from claudius.perception import Perception, shared
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from claudius.tool import JSON, CallState, Card, Tool, ToolCall, ToolClass
from contracts.store.calls import used
from contracts.store.ground import heard, recalled, thought
from driven import reply

ROOM = "rehearsal:t:room:1"
ANA, OZ, BEN = (f"rehearsal:t:{name}" for name in ("ana", "oz", "ben"))
SOON = datetime.now(UTC) + timedelta(hours=1)


@dataclass(slots=True)
class Network(RehearsalAdapter):
    """A network that answers commands to the one who gave them, and shows what was decided."""

    told: list[tuple[str, str]] = field(default_factory=list)
    settled: list[tuple[str, str, str]] = field(default_factory=list)

    async def answer(self, perception: Perception, text: str) -> None:
        """Answer one person."""
        self.told.append((perception.person.rpartition(":")[2], text))

    async def settles(self, conversation: str, receipt: str, card: Card) -> None:
        """Show the verdict."""
        self.settled.append((conversation, receipt, card.verdict))


@asynccontextmanager
async def asking(
    home: Home, *, cls: str = "read", where: str = ROOM, until: datetime = SOON
) -> AsyncIterator[tuple[Alive, Network, ToolCall, list[JSON]]]:
    """Wake a soul that asks for a call in a place where Ana, Ben and the owner Oz are; yield what it asks, and did."""
    done: list[JSON] = []

    async def _run(args: JSON, _: ToolCall) -> str:
        done.append(args)
        return "It says hello."

    schema = {"type": "object", "properties": {"url": {"type": "string"}}}
    tool = Tool(name=f"{cls}.it", purpose="Does it.", cls=ToolClass(cls), schema=schema, run=_run)
    network = Network(audiences={shared(ROOM): (ANA, BEN, OZ)})
    settings = {"CLAUDIUS_OWNERS": OZ}
    voice = Scripted(default=reply("It says hello."))
    async with alive(home, voice, adapter=network, tools=lambda: (tool,), settings=settings) as soul:
        store = soul.mind.store
        known = await recalled(store, heard("Read it.", at=where, person=ANA, key="k1"))
        owner_too = (OZ,) if where == ROOM else (ANA, OZ)
        call = used(
            known.turn,
            cls=cls,
            conversation=where,
            audience=known.audience,
            person=ANA,
            approvers=owner_too,
            until=until,
        )
        intent = thought(known, "May I?", asking=call)
        *_, last = intent.utterances
        shown = last.__class__(
            **{**{n: getattr(last, n) for n in last.__struct_fields__}, "card": card_of(call, ["Oz"], UTC)}
        )
        await store.turns.commit(thought(known, asking=call, utterances=(shown,)))
        soul.server.wake(where)
        await network.until_visible(1)
        yield soul, network, call, done


async def state_of(soul: Alive, call: ToolCall) -> CallState:
    """Return where a call stands once nothing is under way."""
    await soul.idle()
    found = soul.mind.store.calls.find(call.id)
    assert found is not None
    return found.state


@pytest.mark.parametrize(("cls", "is_remembered"), [("read", True), ("write", False), ("send", False)])
async def test_what_is_remembered_of_a_consent_is_bound_by_its_class(
    home: Home, cls: str, *, is_remembered: bool
) -> None:
    """In a channel only a read may be allowed for the talk; anything else is then still asked for."""
    async with asking(home, cls=cls) as (soul, network, call, done):
        await network.hear("!allow talk", person="oz", conversation=ROOM, is_shared=True)

        state = CallState.DONE if is_remembered else CallState.WAITING
        assert await state_of(soul, call) is state
        found = soul.mind.store.calls.grants(ROOM, ANA, datetime.now(UTC))
        assert [(one.scope, one.person, one.granted_by) for one in found] == [("talk", ANA, OZ)][: int(is_remembered)]
        assert len(done) == int(is_remembered)
        if not is_remembered:
            assert network.told == [("oz", "That can be allowed only once.")]


async def test_a_person_allows_in_private_and_a_stranger_learns_nothing(home: Home) -> None:
    """Who was named decides it; whoever is elsewhere is told that there is no such question."""
    private = "rehearsal:t:D-ana:"
    async with asking(home, where=private) as (soul, network, call, done):
        await network.hear(f"!allow {call.id}", person="ben", conversation="rehearsal:t:D-ben:")
        await soul.idle()
        assert network.told == [("ben", "Nothing waits here for a word of yours.")]

        await network.hear("!allow", person="ana", conversation=private)
        assert await state_of(soul, call) is CallState.DONE
        assert done == [call.args]


async def test_a_question_lapses_and_its_card_says_so(home: Home) -> None:
    """After its time no one can allow it; the card is settled by the clock."""
    async with asking(home, until=datetime.now(UTC) - timedelta(seconds=1)) as (soul, network, call, done):
        await network.hear("!allow", person="oz", conversation=ROOM, is_shared=True)
        await soul.idle()
        assert network.told[0][1] in (
            "That is decided: Nobody decided in time.",
            "Nothing waits here for a word of yours.",
        )
        soul.server.tick()
        while not network.settled:
            await soul.mind.store.flush()

        assert await state_of(soul, call) is CallState.LAPSED
        assert [verdict for *_, verdict in network.settled] == ["Nobody decided in time."]
        assert done == []


def test_a_card_shows_all_that_is_sent_and_says_what_it_leaves_out() -> None:
    """A read shows its address; a write is cut, and says so; of a send nothing is left out."""
    long = {"text": "x" * 900}
    cards = {
        cls: card_of(used("t" * 16, cls=cls, args=long, until=SOON), ["Oz", "Ana"], UTC) for cls in ("write", "send")
    }
    read = card_of(used("t" * 16, until=SOON, reason="a file stands here"), [], UTC)

    assert read.question == f"May I read https://example.org/a? (read.it, until {SOON:%A} {SOON.hour}:{SOON:%M})"
    assert (read.args, read.who, read.for_talk) == ("a file stands here", "An owner", True)
    assert cards["write"].args.endswith("… and 308 characters more")
    assert long["text"] in cards["send"].args
    assert cards["send"].text.endswith(f"Oz or Ana may say: !allow {'t' * 16}/0, !deny {'t' * 16}/0")
