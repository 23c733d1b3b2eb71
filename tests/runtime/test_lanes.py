"""Lanes: order within a conversation, independence between conversations, and the handling of failed turns."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from case_rows import rows
from claudius.cognition.turn import Turned
from claudius.errors import AuthFailed, DeliveryLater, DeliveryRefused, Overloaded, RateLimited, StoreError, TooLong
from claudius.home import Home
from claudius.intent import ShownThought
from claudius.memory.sqlite import SqliteRecords
from claudius.perception import Perception
from claudius.provider import Event, Request
from claudius.providers.scripted import Line, Scripted
from claudius.runtime import lanes
from claudius.testing.alive import OWNER, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from ear import Reading, echo


def reply(text: str) -> str:
    """Return a whole reply that says `text`."""
    return f"<internal_monologue>hm</internal_monologue><external_dialogue>{text}</external_dialogue>"


class Answers(RehearsalAdapter):
    """A network that answers commands."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: asyncio.Queue[str] = asyncio.Queue()

    async def answer(self, _: Perception, text: str) -> None:
        """Keep the answer."""
        self.answers.put_nowait(text)


async def test_a_command_that_the_store_fails_is_carried_out_by_the_same_process(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lane rests and goes on, as every lane does; whoever asked is answered once."""
    monkeypatch.setattr(lanes, "STUMBLE", lanes.Retry(0.01))
    network, left = Answers(), [StoreError("busy")]
    async with alive(home, Scripted(), network=network) as soul:
        withdraw = soul.mind.store.inbox.withdraw

        async def fails_once(seq: int, reason: str) -> None:
            """Raise an error the first time."""
            if left:
                raise left.pop()
            await withdraw(seq, reason)

        monkeypatch.setattr(soul.mind.store.inbox, "withdraw", fails_once)
        await network.hear("!help")
        async with asyncio.timeout(10):
            given = await network.answers.get()
        await soul.idle()

    assert given.startswith("Write to me")
    assert network.answers.empty()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(AuthFailed(), "provider_down"), (ValueError("bug"), "unreadable"), (TooLong(), "too_large")],
    ids=["permanent", "bug", "too long"],
)
async def test_a_failure_ends_in_one_typed_apology(home: Home, fault: Exception, kind: str) -> None:
    """A failed message gets one apology, whose turn `why` has and the apology has not, and the next one is answered."""
    (never,) = rows("newcomer", "model", only="public-id")[0].values[0].right["never"]

    def failing(request: Request) -> str:
        """Fail on one message."""
        if "broken" in request.tail.rpartition("## Current Message")[2]:
            raise fault
        return echo(request)

    async with alive(home, Scripted(default=failing)) as soul:
        await soul.network.hear("broken", conversation="rehearsal:t:ops:", is_shared=True)
        await soul.network.hear("in order", conversation="rehearsal:t:ops:", is_shared=True)
        seen = await soul.network.until_visible(2)
        entries = soul.records().conversation(soul.network.visible[0].conversation)

    assert seen[1].text == "re in order"
    spoken = [entry for entry in (entries or {})["entries"] if entry["entry_type"] == "externalDialog"]
    assert spoken[0]["metadata"]["apology"] == kind
    assert spoken[0]["content"] == seen[0].text
    assert not re.search(never, seen[0].text)
    assert spoken[0]["turn"] not in seen[0].text


def _is_postponed(home: Home) -> bool:
    with closing(sqlite3.connect(home.database)) as db:
        return db.execute("SELECT 1 FROM inbox WHERE not_before IS NOT NULL").fetchone() is not None


async def test_an_owners_next_message_has_what_failed_tried_at_once(home: Home) -> None:
    """What waits for a later try is tried as soon as the owner writes there, whoever asked for the wait."""
    async with alive(
        home, Scripted([RateLimited(after_s=500)], default=echo), settings={"CLAUDIUS_OWNERS": OWNER}
    ) as soul:
        await soul.network.hear("one", person="owner")
        async with asyncio.timeout(20):
            while not _is_postponed(home):
                await asyncio.sleep(0.01)
        await soul.network.hear("two", person="owner")
        seen = await soul.network.until_visible(2)

    assert [one.text for one in seen] == ["re one", "re two"]


async def ended(home: Home, times: int) -> None:
    """Let `count` processes end while they think about one message."""
    for _ in range(times):
        async with alive(home, voice := Scripted(default=Line(hang=True)), clean=False) as soul:
            await soul.network.hear("poison", key="k")
            async with asyncio.timeout(20):
                while not voice.requests:
                    await asyncio.sleep(0.01)


async def test_a_message_that_ended_two_processes_is_thought_once_more(home: Home) -> None:
    """After two ended processes the message is not proven to be the cause: the third try answers it."""
    await ended(home, 2)
    async with alive(home, Scripted(default=echo)) as soul:
        seen = await soul.network.until_visible(1)

    assert [one.text for one in seen] == ["re poison"]


async def test_a_message_that_ended_three_processes_is_not_thought_again(home: Home) -> None:
    """A message that ended three processes gets an apology without a model call, and the next message is answered."""
    await ended(home, 3)
    async with alive(home, voice := Scripted(default=echo)) as soul:
        await soul.network.until_visible(1)
        asked = len(voice.requests)
        await soul.network.hear("harmless")
        seen = await soul.network.until_visible(2)
        shown = soul.records().conversation("rehearsal:t:dm-ana:")

    apologies = [entry["metadata"].get("apology") for entry in (shown or {})["entries"]]
    assert asked == 0
    assert "I was interrupted" in seen[0].text
    assert seen[1].text == "re harmless"
    assert "interrupted" in apologies


@pytest.mark.parametrize(
    "poison",
    ["claudius.memory.turns.TurnStore.recall", "claudius.cognition.turn.route", "claudius.cognition.turn.begin"],
)
async def test_the_apology_for_it_does_nothing_that_may_have_ended_them(
    home: Home, monkeypatch: pytest.MonkeyPatch, poison: str
) -> None:
    """Recall, routing or planning may have ended the processes, so the apology uses none of them."""
    await ended(home, 3)

    def deadly(*_: object, **__: object) -> None:
        """End the process, as far as a test can."""
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(poison, deadly)
        async with alive(home, Scripted(default=echo)) as soul:
            seen = await soul.network.until_visible(1)

    assert "I was interrupted" in seen[0].text


async def test_the_third_try_runs_with_no_other_turn_beside_it(home: Home) -> None:
    """The third try runs alone, since it may end the process too; other turns begin when it is done."""
    await ended(home, 2)
    beside, running, most = asyncio.Event(), [0], [0]

    class Counting(Scripted):
        """Counts how many calls run at once; the first waits until another message has arrived."""

        async def complete(self, request: Request) -> AsyncIterator[Event]:
            """Count the call, then reply."""
            running[0] += 1
            most[0] = max(most[0], running[0])
            try:
                if "poison" in request.tail:
                    await beside.wait()
                    for _ in range(50):
                        await asyncio.sleep(0)
                async for event in super().complete(request):
                    yield event
            finally:
                running[0] -= 1

    async with alive(home, Counting(default=echo)) as soul:
        async with asyncio.timeout(20):
            while not running[0]:
                await asyncio.sleep(0)
        await soul.network.hear("hello", person="ben")
        beside.set()
        seen = await soul.network.until_visible(2)

    assert [one.text for one in seen] == ["re poison", "re hello"]
    assert most == [1]


async def test_a_passing_error_in_the_third_try_is_no_end_of_a_process(home: Home) -> None:
    """A retryable error in the third try does not count as an ended process."""
    await ended(home, 2)
    async with alive(home, Scripted([Overloaded(), Overloaded()], default=echo)) as soul:
        seen = await soul.network.until_visible(1)

    assert [one.text for one in seen] == ["re poison"]


async def test_a_message_that_ends_the_process_before_its_turn_is_counted_too(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an unclean stop a message is counted before anything is done with it, even reading a file or a thread."""
    await ended(home, 2)

    async def deadly(*_: object) -> None:
        """End the process, as far as a test can."""
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr("claudius.runtime.access.Membership.look", deadly)
        async with alive(home, Scripted(default=echo), clean=False) as soul:
            await soul.idle()
    async with alive(home, voice := Scripted(default=echo)) as soul:
        seen = await soul.network.until_visible(1)

    assert voice.requests == []
    assert "I was interrupted" in seen[0].text


@pytest.mark.parametrize("asked_s", [1e12, float("inf"), float("nan"), -5.0])
async def test_a_wait_beyond_any_date_is_a_definite_refusal(home: Home, asked_s: float) -> None:
    """The part stays pending, not in doubt, and its next time is one that a clock can represent."""
    async with alive(home, Scripted(default=echo), clean=False) as soul:
        soul.network.faults += [(DeliveryLater(asked_s), False)]
        await soul.network.hear("m")
        async with asyncio.timeout(20):
            while not soul.network.visible and not (
                waiting := soul.mind.store.outbox.deliveries("rehearsal:t:dm-ana:")
            ):
                await asyncio.sleep(0)
            while not soul.network.visible and waiting and waiting[0].not_before is None:
                await asyncio.sleep(0)
                waiting = soul.mind.store.outbox.deliveries("rehearsal:t:dm-ana:")
        states = [one.state for one in waiting]

    assert soul.network.looks == 0
    assert states == ["pending"] or [one.text for one in soul.network.visible] == ["re m"]


async def test_a_thought_is_shown_only_after_words_that_were_sent(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a turn whose reply the network refused, an owner sees no thought; of the next one, they do."""
    shown: list[str] = []

    async def show(thought: ShownThought, _: object) -> None:
        """Keep what would be shown."""
        shown.append(thought.turn)

    monkeypatch.setattr(lanes, "show_thought", show)
    monkeypatch.setattr(lanes, "thought_to_show", lambda turned, *_: shown_thought(turned))
    monkeypatch.setattr(lanes, "is_still_chosen", lambda *_: True)
    async with alive(home, Scripted(default=echo)) as soul:
        soul.network.faults.append((DeliveryRefused("is_archived"), False))
        await soul.network.hear("m")
        await soul.idle()
        refused = list(shown)
        await soul.network.hear("n")
        await soul.until_said(1)

    assert (refused, len(shown)) == ([], 1)


def shown_thought(turned: Turned) -> ShownThought:
    """Return a thought of a turn."""
    return ShownThought(turn=turned.intent.turn, conversation=turned.intent.conversation, person="p", text="Hm.")


async def test_the_working_sign_is_always_cleared(home: Home) -> None:
    """The typing indicator is cleared after success, failure and retry alike."""
    async with alive(home, Scripted([Overloaded(), AuthFailed()], default=echo)) as soul:
        await soul.network.hear("m")
        await soul.network.hear("n")
        await soul.network.until_visible(2)

    assert soul.network.signs
    assert soul.network.signs[-1][1] is False
    assert sum(on for _, on in soul.network.signs) == sum(not on for _, on in soul.network.signs)


async def test_a_soul_that_goes_to_sleep_says_what_it_has_thought(home: Home) -> None:
    """On stop, a running turn ends and its parts are delivered, so that the next start has nothing to look for."""
    voice = Scripted([Line(deltas=(reply("slow"),), delay_s=0.2)], default=echo)

    async with alive(home, voice) as soul:
        await soul.network.hear("m")
        while not voice.requests:
            await asyncio.sleep(0)
    with closing(SqliteRecords(home.database)) as records:
        waiting = records.counts(soul.mind.clock())

    assert [one.text for one in soul.network.visible] == ["slow"]
    assert waiting["inbox"]["pending"] == waiting["outbox"]["pending"] == 0


async def test_what_was_said_before_is_answered_first_though_it_came_while_a_thread_was_read(home: Home) -> None:
    """O3: until a message is taken, an older one that arrives late goes first."""
    network, thread = Reading(), "rehearsal:t:ops:1"
    network._said = 1

    async with alive(home, Scripted(default=echo), network=network) as soul:
        await network.hear("second", conversation=thread, is_shared=True)
        async with asyncio.timeout(20):
            await network.is_read.wait()
        network._said = 0
        await network.hear("first", conversation=thread, is_shared=True)
        network.goes_on.set()
        seen = await soul.until_said(2)

    assert [one.text for one in seen] == ["re first", "re second"]
