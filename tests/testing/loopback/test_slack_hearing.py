"""What the app hears from the Slack on loopback: events, their acknowledgement, and their return."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from lab.loopback.slack.records import Delivery
from lab.loopback.slack.state import APP, BOT, BOT_TOKEN, BOT_USER, TEAM
from lab.loopback.slack.world import SlackWorld
from slack_ear import Ear

Listen = Callable[[], Awaitable[Ear]]


async def test_a_message_in_a_dm_arrives_once_and_is_acknowledged(listen: Listen, slack: SlackWorld) -> None:
    """The event has the shape that Slack's documents give it."""
    ear = await listen()

    ts = await slack.say("D1", "U1", "Good morning")
    await slack.until_quiet()

    (body,) = ear.bodies
    assert (body["type"], body["team_id"], body["api_app_id"]) == ("event_callback", TEAM, APP)
    wanted = {"type": "message", "channel": "D1", "user": "U1", "ts": ts, "channel_type": "im", "text": "Good morning"}
    assert wanted.items() <= body["event"].items()
    (delivery,) = await slack.deliveries()
    assert (delivery.fate, delivery.attempt, delivery.ts) == ("acked", 0, ts)


@pytest.mark.parametrize(
    ("is_mention_first", "order"), [(False, ["message", "app_mention"]), (True, ["app_mention", "message"])]
)
async def test_a_mention_in_a_channel_comes_as_a_pair(
    *, is_mention_first: bool, order: list[str], listen: Listen, slack: SlackWorld
) -> None:
    """Two events of one message, with different ids, in either order."""
    await slack.set(is_mention_first=is_mention_first)
    ear = await listen()

    ts = await slack.say("C1", "U1", f"<@{BOT_USER}> are you there?")
    await slack.until_quiet()

    sent = await slack.deliveries()
    assert [one.event for one in sent] == order
    assert len({one.event_id for one in sent}) == 2
    assert {(event["channel"], event["ts"]) for event in ear.events} == {("C1", ts)}


async def test_an_edited_mention_is_a_mention_again(listen: Listen, slack: SlackWorld) -> None:
    """Slack sends one with every edit, of the same message, beside the change itself (posthog#60193)."""
    ear = await listen()
    ts = await slack.say("C1", "U1", "hello?")

    await slack.edit("C1", ts, f"<@{BOT_USER}> hello?")
    await slack.until_quiet()

    assert [(event["type"], event.get("subtype")) for event in ear.events] == [
        ("message", None),
        ("message", "message_changed"),
        ("app_mention", None),
    ]
    assert ear.events[-1]["ts"] == ts


async def test_bots_mention_us_too_and_we_never_do(client: AsyncWebClient, listen: Listen, slack: SlackWorld) -> None:
    """Another bot's mention is a pair (posthog#60116); of our own there is the echo alone (bolt-python#1350)."""
    ear = await listen()
    await slack.add_user("U7", "hal", is_bot=True, bot_id="B7")
    await slack.say("C1", "U7", f"<@{BOT_USER}> ping")
    await client.chat_postMessage(channel="C1", text=f"<@{BOT_USER}> pong")
    await slack.until_quiet()

    assert [(event["type"], event["bot_id"]) for event in ear.events] == [("message", "B7"), ("app_mention", "B7")]
    assert [one.event for one in await slack.deliveries()] == ["message", "app_mention", "message"]


async def test_a_post_under_another_name_echoes_without_a_user(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Only the bot's id tells that it is ours."""
    await slack.allow(BOT_TOKEN, [*await slack.scopes(BOT_TOKEN), "chat:write.customize"])

    await client.chat_postMessage(channel="C1", text="I am Echo", username="Echo")

    (message,) = await slack.messages("C1")
    assert (message["subtype"], message["bot_id"], "user" in message) == ("bot_message", BOT, False)


async def test_a_mention_in_a_dm_is_no_pair(listen: Listen, slack: SlackWorld) -> None:
    """`app_mention` is a matter of channels."""
    ear = await listen()

    await slack.say("D1", "U1", f"<@{BOT_USER}> psst")
    await slack.until_quiet()

    assert [event["type"] for event in ear.events] == ["message"]


async def test_an_event_that_is_not_acknowledged_comes_again(listen: Listen, slack: SlackWorld) -> None:
    """The same event id, each time in a new envelope, counted, with a reason."""
    await slack.set(ack_deadline_s=0.4)
    ear = await listen()
    ear.fails = 2

    await slack.say("D1", "U1", "Is this on?")
    await slack.until_quiet()

    sent = await slack.deliveries()
    assert [(one.attempt, one.reason, one.fate) for one in sent] == [
        (0, "", "timeout"),
        (1, "timeout", "timeout"),
        (2, "timeout", "acked"),
    ]
    assert (len({one.event_id for one in sent}), len({one.envelope_id for one in sent})) == (1, 3)
    assert len(ear.bodies) == 1
    assert ear.headers[0]["x-slack-retry-num"] == ["2"]
    assert ear.headers[0]["x-slack-retry-reason"] == ["timeout"]


async def test_an_event_is_given_up_after_three_more_tries(listen: Listen, slack: SlackWorld) -> None:
    """Four envelopes, and then no more."""
    await slack.set(ack_deadline_s=0.05)
    ear = await listen()
    ear.fails = 9

    await slack.say("D1", "U1", "Is this on?")
    await slack.until_quiet()

    assert [one.fate for one in await slack.deliveries()] == ["timeout"] * 4
    assert ear.bodies == []


async def test_what_is_said_while_nobody_listens_comes_again_or_never(listen: Listen, slack: SlackWorld) -> None:
    """Reports differ, so both can be had; what was lost stands in history all the same."""
    await slack.set(offline="lose")
    await slack.say("D1", "U1", "lost")
    await slack.until_quiet()
    await slack.set(offline="retry", retry_delays_s=(0.3, 0.3, 9.0))
    await slack.say("D1", "U1", "late")

    ear = await listen()
    await slack.until_quiet()

    assert [event["text"] for event in ear.events] == ["late"]
    first, *fates = [one.fate for one in await slack.deliveries()]
    assert (first, fates[0], fates[-1]) == ("offline", "offline", "acked")
    assert [message["text"] for message in await slack.messages("D1")] == ["lost", "late"]


async def test_our_own_post_comes_back_as_an_event(client: AsyncWebClient, listen: Listen, slack: SlackWorld) -> None:
    """The echo carries the bot's id; Bolt acknowledges and drops it."""
    ear = await listen()

    await client.chat_postMessage(channel="D1", text="Hello")
    await slack.until_quiet()

    (echo,) = await slack.deliveries()
    assert (echo.event, echo.fate) == ("message", "acked")
    (message,) = await slack.messages("D1")
    assert (message["bot_id"], message["user"]) == (BOT, BOT_USER)
    assert ear.bodies == []


async def test_edits_deletes_and_unfurls_are_told(listen: Listen, slack: SlackWorld) -> None:
    """A change has both texts, also where nothing changed; a deletion names what is gone."""
    ear = await listen()
    ts = await slack.say("C1", "U1", "old words")
    await slack.edit("C1", ts, "new words")
    await slack.unfurl("C1", ts)
    await slack.delete("C1", ts)
    await slack.until_quiet()

    _, edit, unfurl, gone = ear.events

    assert [edit["previous_message"]["text"], edit["message"]["text"], edit["message"]["ts"]] == [
        "old words",
        "new words",
        ts,
    ]
    assert "edited" in edit["message"]
    assert unfurl["message"]["text"] == unfurl["previous_message"]["text"] == "new words"
    assert (gone["subtype"], gone["deleted_ts"]) == ("message_deleted", ts)
    assert await slack.messages("C1") == []


async def test_the_first_of_a_thread_leaves_a_tombstone(listen: Listen, slack: SlackWorld) -> None:
    """Slack tells that deletion as a change."""
    ear = await listen()
    ts = await slack.say("C1", "U1", "a question")
    await slack.say("C1", "U1", "a detail", thread_ts=ts)
    await slack.delete("C1", ts)
    await slack.until_quiet()

    told = ear.events[-1]

    assert (told["subtype"], told["message"]["subtype"]) == ("message_changed", "tombstone")
    assert [message["text"] for message in await slack.messages("C1")] == ["This message was deleted.", "a detail"]


async def test_people_react_come_and_go(listen: Listen, slack: SlackWorld) -> None:
    """Each act is an event of its type; the archive too."""
    ear = await listen()
    await slack.add_user("U2", "ben")
    ts = await slack.say("C1", "U1", "hi")
    await slack.react("C1", ts, "U2", "+1")
    await slack.unreact("C1", ts, "U2", "+1")
    await slack.join("C1", "U2")
    await slack.leave("C1", "U2")
    await slack.archive("C1", "U1")
    await slack.open_home("U1")
    await slack.until_quiet()

    kinds = [event["type"] for event in ear.events]

    assert kinds == [
        "message",
        "reaction_added",
        "reaction_removed",
        "member_joined_channel",
        "member_left_channel",
        "channel_archive",
        "app_home_opened",
    ]
    assert ear.events[1]["item"] == {"type": "message", "channel": "C1", "ts": ts}


async def test_the_app_hears_only_where_it_is_and_what_it_may(listen: Listen, slack: SlackWorld) -> None:
    """No event from a channel without us, without its scope, or without its subscription."""
    ear = await listen()
    await slack.add_channel("C2", "elsewhere", members=["U1"])
    await slack.say("C2", "U1", f"<@{BOT_USER}> hi")
    await slack.set(events=["message.im"])
    await slack.say("C1", "U1", "hi")
    await slack.allow("xoxb-loopback", [one for one in await slack.scopes("xoxb-loopback") if one != "im:history"])
    await slack.say("D1", "U1", "hi")
    await slack.until_quiet()

    assert ear.bodies == []
    assert await slack.deliveries() == []


async def test_events_are_lost_doubled_and_shuffled_on_order(listen: Listen, slack: SlackWorld) -> None:
    """What is doubled has one event id; what is held back comes in the order wished for."""
    ear = await listen()
    await slack.lose_events(1)
    await slack.say("D1", "U1", "lost")
    await slack.say("D1", "U1", "lost too", deliver=False)
    await slack.double_events(1)
    await slack.say("D1", "U1", "twice")
    await slack.until_quiet()
    await slack.hold_events()
    for text in ("one", "two", "three"):
        await slack.say("D1", "U1", text)
    released = await slack.release_events("reversed")
    await slack.until_quiet()

    sent = await slack.deliveries()
    texts = {message["ts"]: message["text"] for message in await slack.messages("D1")}

    assert released == 3
    assert [texts[one.ts] for one in sent] == ["lost", "lost too", "twice", "twice", "three", "two", "one"]
    assert [one.fate for one in sent] == ["lost"] * 2 + ["acked"] * 5
    assert len({body["event_id"] for body in ear.bodies}) == 4
    assert [entry.is_delivered for entry in await slack.trace()] == [True, False, True, True, True, True]


def _told(sent: list[Delivery]) -> list[tuple[str, Any]]:
    return [(one.event, one.answer) for one in sent]


async def test_commands_and_buttons_are_answered_with_the_ack_or_later(
    client: AsyncWebClient, listen: Listen, slack: SlackWorld
) -> None:
    """A command may be answered in its ack and five times at its URL; each answer is seen by one person."""
    ear = await listen()

    @ear.app.command("/claudius")
    async def command(ack: Any, respond: Any) -> None:
        """Answer once, and six times more."""
        await ack("At once.")
        for _ in range(6):
            await respond("Later.")

    @ear.app.action("forget")
    async def button(ack: Any) -> None:
        """Acknowledge."""
        await ack()

    posted = await client.chat_postMessage(channel="D1", text="Shall I?")
    await slack.slash("D1", "U1", "/claudius", "status")
    await slack.click("D1", posted["ts"], "U1", "forget", "all")
    calls = await slack.until_called("response_url", 6)

    sent = [one for one in await slack.until_fate("acked", 3) if one.kind != "events_api"]
    assert _told(sent) == [("/claudius", {"text": "At once."}), ("forget", {})]
    assert [call.status for call in calls] == [200] * 5 + [404]
    assert {entry.to for entry in await slack.visible() if entry.kind == "response"} == {"U1"}
