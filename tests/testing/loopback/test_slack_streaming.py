"""Messages that grow, on the Slack on loopback."""

from __future__ import annotations

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from lab.loopback.slack.state import TEAM
from lab.loopback.slack.world import SlackWorld


async def test_a_stream_grows_and_ends_as_one_message(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Start, appends, stop; the whole text stands, with the metadata of the end."""
    ts = await slack.say("C1", "U1", "tell me")
    stream = await client.chat_stream(
        channel="C1", thread_ts=ts, recipient_team_id=TEAM, recipient_user_id="U1", buffer_size=4
    )

    for word in ("Once ", "upon ", "a time"):
        await stream.append(markdown_text=word)
    await stream.stop(metadata={"event_type": "e", "event_payload": {}})

    kinds = [entry.kind for entry in await slack.trace() if entry.by == "app"]
    assert kinds == ["stream_start", "stream_append", "stream_append", "stream_end"]
    _, message = await slack.messages("C1")
    assert (message["text"], message["thread_ts"], message["ts"]) == ("Once upon a time", ts, stream.ts)
    (whole,) = await slack.visible()
    assert (whole.text, whole.metadata) == ("Once upon a time", {"event_type": "e", "event_payload": {}})


async def test_streams_end_by_time_by_the_reader_and_refuse_edits(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Each by an error of its own; after its time the message can be edited like any other."""
    ts = await slack.say("D1", "U1", "tell me")
    started = await client.chat_startStream(channel="D1", thread_ts=ts, markdown_text="Once ")
    where = {"channel": "D1", "ts": started["ts"]}
    errors = []

    async def fail(method: str, **arguments: str) -> None:
        """Keep the error of a call."""
        with pytest.raises(SlackApiError) as refused:
            await client.api_call(method, json=where | arguments)
        errors.append(refused.value.response["error"])

    await fail("chat.update", text="x")
    await slack.stop_stream("D1", started["ts"])
    await fail("chat.appendStream", markdown_text="x")
    await slack.shift_clock(301)
    await fail("chat.appendStream", markdown_text="x")
    await fail("chat.stopStream")
    await client.chat_update(**where, text="Once, and no more.")

    over = "message_not_in_streaming_state"
    assert errors == ["streaming_state_conflict", "stopped_by_user", over, over]


async def test_a_stream_in_a_channel_is_for_somebody(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Both names are asked for."""
    ts = await slack.say("C1", "U1", "tell me")
    errors = []
    for arguments in ({}, {"recipient_team_id": TEAM}):
        with pytest.raises(SlackApiError) as refused:
            await client.chat_startStream(channel="C1", thread_ts=ts, **arguments)
        errors.append(refused.value.response["error"])

    assert errors == ["missing_recipient_team_id", "missing_recipient_user_id"]
