"""Catching up: every place that may hold something missed is read, from the last confirmed position, and no more."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from claudius.adapters.slack import history
from claudius.adapters.slack.adapter import SlackAdapter
from claudius.errors import DeliveryLater, DeliveryUnknown
from claudius.runtime.adapter import Gap, Swept
from ear import Ear
from lab.loopback.slack.state import BOT_TOKEN
from lab.loopback.slack.world import SlackWorld


async def swept(adapter: SlackAdapter, gap: Gap) -> list[Swept]:
    """Sweep once."""
    return [one async for one in adapter.catch_up(gap)]


def texts(found: list[Swept]) -> list[str]:
    """Return the texts that were found, in order."""
    return [perception.text for one in found for perception in one.perceptions]


def gap(conversations: tuple[str, ...] = (), *, hours: float = 24.0, **marks: str) -> Gap:
    """Return a gap: what may have been missed, as marks by channel."""
    since = datetime.now(UTC) - timedelta(hours=hours)
    return Gap(since=since, marks={f"T1:{name}": mark for name, mark in marks.items()}, conversations=conversations)


async def test_a_live_message_does_not_move_the_mark_past_the_gap(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """A live message after the gap does not move the mark: the sweep reads from where the last sweep ended."""
    before = await slack.say("D1", "U1", "before")
    await slack.say("D1", "U1", "missed", deliver=False)
    after = await slack.say("D1", "U1", "after")
    await ear.until(2)

    found = await swept(adapter, gap(D1=before))

    assert texts(found) == ["missed", "after"]
    assert [one.position for one in found if one.channel == "T1:D1" and one.position] == [after]
    assert texts(await swept(adapter, gap(D1=after))) == []


async def test_what_is_said_while_a_channel_is_read_is_found_by_the_next_sweep(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """A thread is read after its channel, so its later messages prove nothing about the channel."""
    first = await slack.say("C1", "U1", "<@U0BOT> first")
    await ear.until(1)
    reading = adapter.catch_up(gap((f"slack:T1:C1:{first}",), C1=first))

    channel = await anext(reading)
    await slack.say("C1", "U1", "<@U0BOT> meanwhile", deliver=False)
    await slack.say("C1", "U1", "later, in the thread", thread_ts=first, deliver=False)
    found = [channel, *[one async for one in reading]]
    mark = max(one.position for one in found if one.channel == "T1:C1")

    assert "meanwhile" not in texts(found)
    assert "meanwhile" in texts(await swept(adapter, gap(C1=mark)))


async def test_a_thread_that_has_not_grown_is_not_asked_for(slack: SlackWorld, ear: Ear, adapter: SlackAdapter) -> None:
    """Its channel shows the thread's latest reply. It is reported complete before the threads that take a call."""
    still, grown, bare = [await slack.say("C1", "U1", f"<@U0BOT> {n}") for n in range(3)]
    for thread in (still, grown):
        await slack.say("C1", "U1", "heard", thread_ts=thread)
    mark = await slack.say("C1", "U1", "heard, too")
    await ear.until(6)
    await slack.say("C1", "U1", "missed", thread_ts=grown, deliver=False)

    found = await swept(adapter, gap(tuple(f"slack:T1:C1:{one}" for one in (grown, still, bare)), C1=mark))

    assert {call.arguments["ts"] for call in await slack.calls("conversations.replies")} == {grown, bare}
    assert next(one.conversation for one in found if one.conversation) == f"slack:T1:C1:{still}"
    assert texts(found) == ["missed"]


async def test_pages_are_read_to_the_end_and_what_is_too_much_is_counted(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep is bounded and reads oldest first, and it reports what it left out."""
    monkeypatch.setattr(history, "PAGE", 10)
    monkeypatch.setattr(history, "MOST", 40)
    first = await slack.say("D1", "U1", "m0")
    await ear.until(1)
    for n in range(1, 50):
        await slack.say("D1", "U1", f"m{n}", deliver=False)
    adapter._reached = history.Reached()
    assert adapter._inside is not None
    adapter._inside.history._reached = adapter._reached

    found = await swept(adapter, gap(D1=first))

    assert texts(found) == [f"m{n}" for n in range(1, 41)]
    assert sum(one.left_out for one in found) == 9
    assert found[0].conversation == "slack:T1:D1:"


async def test_nothing_older_than_the_bound_is_looked_at(slack: SlackWorld, ear: Ear, adapter: SlackAdapter) -> None:
    """After a long absence only the last hours are answered."""
    await slack.shift_clock(-7200)
    old = await slack.say("D1", "U1", "old", deliver=False)
    await slack.say("D1", "U1", "two hours ago", deliver=False)
    await slack.shift_clock(7200)
    await slack.say("D1", "U1", "new", deliver=False)

    assert texts(await swept(adapter, gap(hours=1.0, D1=old))) == ["new"]


async def test_one_channel_that_cannot_be_read_stops_no_other(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """If one channel was left or lacks a scope, the others are swept."""
    await slack.add_channel("C2", "gone", members=["U1"])
    mark = await slack.say("C1", "U1", "here", deliver=False)
    await slack.say("C1", "U1", "<@U0BOT> missed", deliver=False)

    assert texts(await swept(adapter, gap(C2=mark, C1=mark))) == ["missed"]


async def test_a_server_without_one_of_the_methods_is_swept_by_the_others(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """A missing method is not a temporary fault: the sweep loses only what that method would tell."""
    mark = await slack.say("C1", "U1", "<@U0BOT> first")
    thread = f"slack:T1:C1:{mark}"
    await ear.until(1)
    await slack.say("C1", "U1", "in the thread", thread_ts=mark, deliver=False)
    await slack.say("C1", "U1", "in the channel", deliver=False)
    await slack.say("D1", "U1", "never heard", deliver=False)

    await slack.fault("users.conversations", "status", status=404)
    everything = texts(await swept(adapter, gap((thread,), C1=mark)))
    await slack.fault("conversations.history", "status", status=404, where={"channel": "C1"})
    threads = texts(await swept(adapter, gap((thread,), C1=mark)))
    await slack.fault("conversations.replies", "status", status=404)
    channels = texts(await swept(adapter, gap((thread,), C1=mark)))

    assert everything == ["in the channel", "in the thread", "never heard"]
    assert threads == ["in the thread", "never heard"]
    assert channels == ["in the channel", "never heard"]


async def test_the_most_recently_active_channels_are_read_first(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """Slack's rate limit makes a sweep of many channels long, so people who wait come before quiet channels."""
    marks = {f"C{n}": "1767600000.000001" for n in (1, 2, 3)}
    for name in marks:
        await slack.add_channel(name)
    await swept(adapter, gap(("slack:T1:C3:1767600000.000001", "slack:T1:C2:"), **marks))

    asked = [call.arguments["channel"] for call in await slack.calls("conversations.history")]
    assert list(dict.fromkeys(asked))[:3] == ["C3", "C2", "C1"]


async def test_trouble_with_one_channel_does_not_affect_the_others(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """The other channels are read. Then the sweep fails, so that it is repeated."""
    mark = await slack.say("D1", "U1", "one")
    await slack.say("D1", "U1", "two", deliver=False)
    await slack.fault("conversations.history", "status", where={"channel": "C1"})
    found: list[Swept] = []

    async def sweep() -> None:
        """Collect what comes before the failure."""
        async for one in adapter.catch_up(gap(C1=mark, D1=mark)):
            found.append(one)  # noqa: PERF401 - a list of it all would be lost with the failure

    with pytest.raises(DeliveryUnknown):
        await sweep()

    assert texts(found) == ["two"]
    assert "T1:" not in [one.channel for one in found]


async def test_a_server_that_repeats_its_cursor_is_not_asked_for_ever(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that leads back to itself is the last one."""
    assert adapter._inside is not None
    asked: list[str] = []

    async def again(method: str, **_: object) -> dict[str, object]:
        """Answer every page with the same one."""
        asked.append(method)
        return {"messages": [{"ts": "1767600000.000001"}], "response_metadata": {"next_cursor": "same"}}

    monkeypatch.setattr(adapter._inside.history, "_call", again)

    assert len(await adapter._inside.history._read("conversations_history", channel="C1", oldest="0")) == 1
    assert len(asked) == 2


async def test_a_slack_that_does_not_answer_now_is_asked_again_later(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """The sweep fails as a whole, and nothing counts as read."""
    mark = await slack.say("D1", "U1", "one")
    await slack.say("D1", "U1", "two", deliver=False)
    await ear.until(1)
    await slack.fault("conversations.history", "status")
    with pytest.raises(DeliveryUnknown):
        await swept(adapter, gap(D1=mark))
    await slack.fault("conversations.history", "rate_limit", retry_after_s=60)
    with pytest.raises(DeliveryLater):
        await swept(adapter, gap(D1=mark))

    assert texts(await swept(adapter, gap(D1=mark))) == ["two"]


async def test_only_a_home_that_has_heard_before_sweeps_new_conversations(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """An empty home is not sent through a day of other people's messages."""
    mark = await slack.say("C1", "U1", "<@U0BOT> first")
    await slack.say("D1", "U1", "hello", deliver=False)

    assert texts(await swept(adapter, gap())) == []
    assert "hello" in texts(await swept(adapter, gap(C1=mark)))
    await slack.allow(BOT_TOKEN, [scope for scope in await slack.scopes(BOT_TOKEN) if scope != "im:read"])
    assert "hello" not in texts(await swept(adapter, gap(C1=mark)))


async def test_a_sweep_keeps_to_slacks_pace() -> None:
    """The limit is fifty calls a minute after a burst, checked with a fake clock."""
    now = [0.0]
    pace = history.Pace(burst=3, every_s=1.2, now=lambda: now[0])
    for _ in range(3):
        await pace.step()
    assert pace._free_at == pytest.approx(0.0)
    now[0] = 100.0
    for _ in range(3):
        await pace.step()

    assert pace._free_at == pytest.approx(100.0)


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"blocks": [{"type": ["section"], "text": "x"}]}, id="a type that is a list"),
        pytest.param({"blocks": [{"type": "table", "rows": 7}]}, id="rows that are a number"),
        pytest.param({"blocks": [{"type": "table", "rows": [None, [{"text": "x"}]]}]}, id="a row that is none"),
        pytest.param({"files": [None, {"id": "F1", "size": "big"}]}, id="a file that is none, a size that is a text"),
        pytest.param({"files": 7}, id="files that are a number"),
        pytest.param({"files": [{"id": "F1", "transcription": {"preview": "x"}}]}, id="a preview that is a text"),
        pytest.param({"bot_id": "B9", "bot_profile": "x"}, id="a profile that is a text"),
        pytest.param({"attachments": [{"message_blocks": ["x", {"message": "x"}]}]}, id="blocks that are texts"),
    ],
)
async def test_a_message_of_an_odd_shape_is_heard_as_far_as_it_can_be_read(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter, odd: dict[str, Any]
) -> None:
    """Live it is acknowledged at once; in the history it blocks neither what follows it nor the next channel."""
    mark = await slack.say("D1", "U1", "before")
    await ear.until(1)
    await slack.say("D1", "U1", "odd, live", fields=odd)
    await slack.say("D1", "U1", "after it")
    await ear.until(3)
    await slack.say("D1", "U1", "odd, missed", fields=odd, deliver=False)
    await slack.say("D1", "U1", "missed", deliver=False)

    found = [one.partition("\n")[0] for one in texts(await swept(adapter, gap(D1=mark)))]

    assert found == ["odd, live", "after it", "odd, missed", "missed"]
    assert [one.text.partition("\n")[0] for one in ear.heard.values()] == ["before", "odd, live", "after it"]


async def test_a_message_that_cannot_be_read_blocks_no_other(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its shape, the ones after it are found."""
    mark = await slack.say("D1", "U1", "before")
    await ear.until(1)
    for text in ("odd", "missed"):
        await slack.say("D1", "U1", text, deliver=False)
    read = history.from_history

    def reads(message: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        """Fail as for a shape that no one thought of."""
        if message["text"] == "odd":
            raise TypeError("odd")
        return read(message, *args, **options)

    monkeypatch.setattr(history, "from_history", reads)

    assert texts(await swept(adapter, gap(D1=mark))) == ["missed"]


async def test_a_call_that_is_given_up_gives_its_turn_back() -> None:
    """A cancelled wait made no call, so the next one need not wait for it."""
    pace = history.Pace(burst=1, every_s=60.0, now=lambda: 0.0)
    await pace.step()
    before = pace._free_at
    for _ in range(3):
        waiting = asyncio.create_task(pace.step())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])

    assert pace._free_at == before


async def test_a_thread_is_read_only_if_a_call_is_free(slack: SlackWorld, ear: Ear, adapter: SlackAdapter) -> None:
    """A turn does not wait for Slack's pace, in a thread no more than in a channel."""
    first = await slack.say("C1", "U1", "<@U0BOT> hello")
    await slack.say("C1", "U1", "<@U0BOT> so?", thread_ts=first)
    await ear.until(2)
    assert adapter._inside is not None
    adapter._inside.history._paces["conversations_replies"] = history.Pace(burst=0, every_s=60.0)

    with pytest.raises(DeliveryLater):
        await adapter.context(next(reversed(ear.heard.values())), 10)
