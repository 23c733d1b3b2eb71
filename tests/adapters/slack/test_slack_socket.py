"""The socket's life: failures that the client misses are noticed, nothing is left behind or acknowledged too early."""

import asyncio
import logging
import time
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from msgspec.structs import replace

from claudius.adapters.slack.adapter import SlackAdapter
from claudius.adapters.slack.connection import UNLIKELY, SlackTimings, Socket, judge, watch
from claudius.errors import AdapterRefused, OverBudget
from claudius.runtime.adapter import Gap, Link
from ear import Ear
from lab.loopback.slack.state import APP_TOKEN, BOT_USER
from lab.loopback.slack.world import SlackWorld
from slack_side import QUICK, Make

MENTION = f"<@{BOT_USER}>"


async def test_bolt_does_not_silence_our_logger(slack: SlackWorld, ear: Ear) -> None:
    """Bolt sets the level of a logger named after its app. If that were our logger, nothing more would be logged."""
    await slack.say("D1", "U1", "hello")
    await ear.until(1)

    assert logging.getLogger("claudius").level < logging.CRITICAL
    assert logging.getLogger("claudius.adapters.slack").isEnabledFor(logging.ERROR)
    assert not logging.getLogger("claudius.slack.library").isEnabledFor(logging.ERROR)


async def test_what_is_over_budget_is_acknowledged(slack: SlackWorld, ear: Ear) -> None:
    """Slack need not redeliver it, because it would not be heard the next time either."""
    ear.troubles.append(OverBudget("too many"))

    await slack.say("D1", "U1", "hello")
    await slack.until_fate("acked")

    assert ear.told == []


async def test_a_dead_ticket_is_not_tried_for_ever(slack: SlackWorld, adapter: SlackAdapter) -> None:
    """A26: the client would retry the same address again and again; the watchdog makes it ask for another."""
    await slack.spoil_tickets(2)
    ear = Ear()
    listening = asyncio.create_task(adapter.listen(ear.accept))
    await slack.until_connected()
    await adapter.close()
    await listening

    assert len(await slack.calls("apps.connections.open")) == 3


async def test_a_client_that_never_connects_is_replaced(slack: SlackWorld, make: Make) -> None:
    """A26: after a while the old client is closed and everything is created anew."""
    adapter, ear = make(timings=replace(QUICK, ticket_s=60.0, client_s=0.5)), Ear()
    await slack.refuse_upgrades(-1)
    listening = asyncio.create_task(adapter.listen(ear.accept))
    await adapter_down(adapter)
    await slack.until_called("auth.test", 2)
    await slack.refuse_upgrades(0)
    await slack.until_connected()
    await slack.say("D1", "U1", "hello")
    await ear.until(1)
    await adapter.close()
    await listening

    assert len(await slack.sockets()) == 0


async def adapter_down(adapter: SlackAdapter) -> None:
    """Wait until the adapter reports that it will try again later."""
    async with asyncio.timeout(20):
        await adapter.link.tried()


async def test_a_socket_that_is_read_and_never_answers_is_replaced(slack: SlackWorld, ear: Ear) -> None:
    """A25: a half-open socket never sends a pong."""
    await slack.sicken("half_open")
    await slack.until_connected(1, opened=2)
    await slack.say("D1", "U1", "hello")
    await ear.until(1)

    assert len(await slack.sockets()) == 1


async def test_a_deaf_socket_is_found_and_a_quiet_one_left_alone(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """A25: pongs arrive and events do not: the history shows it. A quiet workspace causes no restart."""
    gaps: list[float | None] = []
    await slack.say("D1", "U1", "hello")
    await ear.until(1)
    adapter.link.on_missed(gaps.append)
    await slack.until_called("conversations.history", 3)
    assert (await slack.until_connected(), gaps) == (1, [])

    await slack.sicken("deaf")
    await slack.say("D1", "U1", "are you there?")
    await slack.until_connected(1, opened=2)

    assert (gaps[0] or 0) >= QUICK.deaf_s


@pytest.mark.parametrize("where", ["in a thread", "in the channel"])
async def test_one_message_that_slack_never_brings_is_found_among_others_that_come(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter, where: str
) -> None:
    """Later messages and messages elsewhere do not hide the lost one."""
    found = missed_by(adapter)
    first = await slack.say("C1", "U1", f"{MENTION} hello")
    await ear.until(1)

    await slack.say("C1", "U1", f"{MENTION} lost", thread_ts=first if where == "in a thread" else None, deliver=False)
    if where == "in the channel":
        await slack.say("C1", "U1", f"{MENTION} after it")
    await slack.say("D1", "U1", "elsewhere")

    assert await asyncio.wait_for(found.get(), 20)


async def test_a_message_that_is_lost_before_any_other_came_is_found(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """Nothing has arrived since the start, but the sweep's marks show that a person spoke recently."""
    mark = await slack.say("D1", "U1", "before the start", deliver=False)
    async for _ in adapter.catch_up(Gap(since=datetime.now(UTC) - timedelta(hours=1), marks={"T1:D1": mark})):
        pass
    found = missed_by(adapter)

    await slack.say("D1", "U1", "lost", deliver=False)

    assert await asyncio.wait_for(found.get(), 20) >= QUICK.deaf_s
    assert ear.heard == {}


async def test_what_another_listener_may_have_heard_is_not_missed(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """Slack gives each event to one of them: a few that did not come here prove nothing, many in a row do."""
    await slack.say("D1", "U1", "hello")
    await ear.until(1)
    adapter.link.listeners, adapter.link.was_alone = 2, lambda _: False
    found = missed_by(adapter)

    for n in range(3):
        await slack.say("D1", "U1", f"to the other one {n}", deliver=False)
    looked_at = len(await slack.calls("conversations.history"))
    await slack.until_called("conversations.history", looked_at + 3)
    few = found.qsize()
    for n in range(UNLIKELY):
        await slack.say("D1", "U1", f"to nobody {n}", deliver=False)

    assert few == 0
    assert await asyncio.wait_for(found.get(), 20) >= QUICK.deaf_s


async def test_one_message_to_nobody_is_found_by_whoever_listens_alone(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """What is said after the other listener went can have come to no one else: one message proves it."""
    await slack.say("D1", "U1", "hello")
    await ear.until(1)
    found = missed_by(adapter)
    await slack.say("D1", "U1", "to the other one", deliver=False)
    went = time.time()
    adapter.link.listeners, adapter.link.was_alone = 2, lambda ago_s: time.time() - ago_s > went
    looked_at = len(await slack.calls("conversations.history"))
    await slack.until_called("conversations.history", looked_at + 3)
    before = found.qsize()

    await slack.say("D1", "U1", "to nobody", deliver=False)

    assert before == 0
    assert await asyncio.wait_for(found.get(), 20) >= QUICK.deaf_s


class Well:
    """A socket that looks alive to its client."""

    async def is_connected(self) -> bool:
        """Return True."""
        return True

    def silent_s(self) -> float:
        """Report that a pong has just arrived."""
        return 0.0


async def test_a_new_client_is_made_only_if_no_message_arrives_at_all() -> None:
    """If other messages arrive, one missing message is only searched for, and the socket is kept."""
    link, gaps = Link(connected=True), []
    link.on_missed(gaps.append)
    silences = [None, 2.0, None, 61.0, None]

    async def deaf_s() -> float | None:
        """Return the next silence in seconds, one for each call."""
        return silences.pop(0)

    await watch(cast("Socket", Well()), link, SlackTimings(tick_s=0.0), deaf_s)

    assert (gaps, silences) == ([2.0, 61.0], [None])


def missed_by(adapter: SlackAdapter) -> asyncio.Queue[float]:
    """Return a queue that gets the length in seconds of each gap reported from now on."""
    found: asyncio.Queue[float] = asyncio.Queue()
    adapter.link.on_missed(lambda gap_s: found.put_nowait(gap_s or 0.0))
    return found


async def test_an_unavailable_slack_is_tried_again(slack: SlackWorld, adapter: SlackAdapter) -> None:
    """A 500 or a 429 from the connect call says nothing about the tokens."""
    await slack.fault("auth.test", "status", times=2)
    await slack.fault("apps.connections.open", "error", error="internal_error")
    ear = Ear()
    listening = asyncio.create_task(adapter.listen(ear.accept))
    await adapter_down(adapter)
    assert "Slack cannot be reached" in adapter.link.detail
    await slack.until_connected()
    await adapter.close()
    await listening


@pytest.mark.parametrize("how", ["uninstall", "revoke"])
async def test_an_app_that_was_removed_stops(slack: SlackWorld, make: Make, how: str) -> None:
    """After `tokens_revoked`, `app_uninstalled` or a token refused on reconnection, the adapter says so and ends."""
    adapter, ear = make(timings=replace(QUICK, client_s=0.3)), Ear()
    listening = asyncio.create_task(adapter.listen(ear.accept))
    await slack.until_connected()
    if how == "uninstall":
        await slack.uninstall()
    else:
        await slack.revoke(APP_TOKEN)
        await slack.drop_sockets()
    with pytest.raises(AdapterRefused, match="slack: SLACK_"):
        await asyncio.wait_for(listening, 20)
    await adapter.close()

    await slack.until_connected(0)


async def test_several_sockets_are_told_to_the_owner(slack: SlackWorld, make: Make, ear: Ear) -> None:
    """Another Claudius with the same tokens receives a share of the events."""
    second, other = make(), Ear()
    listening = asyncio.create_task(second.listen(other.accept))
    await slack.until_connected(2)
    async with asyncio.timeout(20):
        while "share the events" not in second.link.detail:
            await asyncio.sleep(0.01)
    await second.close()
    await listening


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        ({"is_connected": True, "down_s": 0, "silent_s": 29, "ticket_s": 99}, "well"),
        ({"is_connected": True, "down_s": 0, "silent_s": 30, "ticket_s": 99}, "silent"),
        ({"is_connected": False, "down_s": 4, "silent_s": 99, "ticket_s": 99}, "lost"),
        ({"is_connected": False, "down_s": 5, "silent_s": 0, "ticket_s": 5}, "dead ticket"),
        ({"is_connected": False, "down_s": 9, "silent_s": 0, "ticket_s": 4}, "lost"),
        ({"is_connected": False, "down_s": 60, "silent_s": 0, "ticket_s": 4}, "dead client"),
    ],
)
def test_the_watchdog_judges_by_what_was_heard(facts: dict[str, float], verdict: str) -> None:
    """The limits of the design: 5 s for a ticket, 60 s for a client, 30 s without a pong."""
    assert judge(SlackTimings(), **facts) == verdict  # type: ignore[arg-type] # a table of cases
