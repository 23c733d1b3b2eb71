"""What the oracle is shown of a Slack on loopback."""

from __future__ import annotations

from slack_sdk.web.async_client import AsyncWebClient

from lab.loopback.slack.judged import as_world
from lab.loopback.slack.world import SlackWorld


async def test_the_oracle_sees_who_said_what_where(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Keys and conversations as the adapter names them; our own posts by the key that they carry."""
    asked = await slack.say("C1", "U1", "a question")
    whispered = await slack.say("D1", "U1", "a secret")
    await slack.delete("D1", whispered)
    metadata = {"event_type": "claudius_turn", "event_payload": {"key": "k1"}}
    await client.chat_postMessage(channel="C1", text="an answer", thread_ts=asked, metadata=metadata)

    world = as_world(await slack.trace(), is_owed=lambda entry: entry.channel == "C1")

    first, second = world.posted
    assert (first.key, first.conversation) == (f"slack:T1:C1:{asked}", f"slack:T1:C1:{asked}")
    assert (second.conversation, second.is_owed, second.may_be_unheard) == ("slack:T1:D1:", False, True)
    (seen,) = world.visible
    assert (seen.conversation, seen.key, seen.text) == (first.conversation, "k1", "an answer")
