"""The Web API of the Slack on loopback, through Slack's own client: what it does, refuses and breaks."""

from __future__ import annotations

from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import APP_TOKEN, BOT_TOKEN
from lab.loopback.slack.world import SlackWorld

KEY = {"event_type": "claudius_turn", "event_payload": {"key": "k1", "part": 0}}
TALL = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3_001}}


async def _error(client: AsyncWebClient, method: str, arguments: dict[str, Any]) -> str:
    with pytest.raises(SlackApiError) as refused:
        await client.api_call(method, json=arguments)
    return str(refused.value.response["error"])


@pytest.mark.parametrize(
    ("token", "method", "error"),
    [
        ("", "auth.test", "not_authed"),
        ("xoxb-other", "auth.test", "invalid_auth"),
        (BOT_TOKEN, "apps.connections.open", "not_allowed_token_type"),
        (APP_TOKEN, "chat.postMessage", "not_allowed_token_type"),
        (BOT_TOKEN, "chat.shout", "unknown_method"),
    ],
)
async def test_tokens_open_what_they_are_for(token: str, method: str, error: str, server: SlackServer) -> None:
    """Each kind of token has its methods."""
    client = AsyncWebClient(token, base_url=server.base_url)

    assert await _error(client, method, {"channel": "C1", "text": "hi"}) == error


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"text": "hi"}, "invalid_arguments"),
        ({"channel": "", "text": "hi"}, "channel_not_found"),
        ({"channel": "C404", "text": "hi"}, "channel_not_found"),
        ({"channel": "G1", "text": "hi"}, "channel_not_found"),
        ({"channel": "C2", "text": "hi"}, "not_in_channel"),
        ({"channel": "C3", "text": "hi"}, "is_archived"),
        ({"channel": "C1", "text": ""}, "no_text"),
        ({"channel": "C1", "text": "a", "markdown_text": "b"}, "markdown_text_conflict"),
        ({"channel": "C1", "markdown_text": "x" * 12_001}, "msg_too_long"),
        ({"channel": "C1", "text": "a", "thread_ts": "soon"}, "invalid_thread_ts"),
        ({"channel": "C1", "text": "a", "metadata": {"event_type": 1}}, "invalid_metadata_format"),
        ({"channel": "C1", "text": "a", "metadata": {"event_type": "x"}}, "invalid_metadata_schema"),
        ({"channel": "C1", "text": "a", "blocks": [{"no": "type"}]}, "invalid_blocks_format"),
        ({"channel": "C1", "text": "a", "blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        (
            {"channel": "C1", "text": "a", "blocks": [{"type": "markdown", "text": "x" * 6_001}] * 2},
            "msg_blocks_too_long",
        ),
    ],
)
async def test_a_post_is_refused_as_slack_refuses_it(
    arguments: dict[str, Any], error: str, client: AsyncWebClient, slack: SlackWorld
) -> None:
    """By name; and nothing becomes visible."""
    await slack.add_channel("G1", "secret", kind="group", members=["U1"])
    await slack.add_channel("C2", "elsewhere", members=["U1"])
    await slack.add_channel("C3", "old")
    await slack.archive("C3", "U1")

    found = await _error(client, "chat.postMessage", arguments)

    assert found == error
    assert await slack.visible() == []


async def test_a_text_over_the_limit_is_cut_with_a_warning(client: AsyncWebClient, slack: SlackWorld) -> None:
    """40,000 characters stand."""
    answer = await client.chat_postMessage(channel="C1", text="x" * 40_001)

    (message,) = await slack.messages("C1")
    assert (answer["warning"], len(message["text"])) == ("message_truncated", 40_000)


@pytest.mark.parametrize(
    ("method", "arguments", "error"),
    [
        ("reactions.add", {"channel": "", "timestamp": "", "name": "x"}, "no_item_specified"),
        ("reactions.add", {"channel": "C1", "timestamp": "TS", "name": "two words"}, "invalid_name"),
        ("reactions.add", {"channel": "OLD", "timestamp": "OLD_TS", "name": "eyes"}, "is_archived"),
        ("chat.postMessage", {"channel": "C1", "text": "x", "blocks": [TALL]}, "invalid_blocks"),
        ("assistant.threads.setStatus", {"channel_id": "C1", "thread_ts": "TS", "status": "x", "loading_messages": ["y"] * 11}, "invalid_arguments"),
        ("views.publish", {"user_id": "U9", "view": {}}, "user_not_found"),
        ("views.publish", {"user_id": "U1", "view": {"type": "modal"}}, "invalid_arguments"),
        ("files.info", {"file": "F9"}, "file_not_found"),
        ("conversations.history", {"channel": "C1", "limit": 1000}, "invalid_limit"),
        ("conversations.history", {"channel": "C1", "limit": "many"}, "invalid_arguments"),
        ("conversations.history", {"channel": "C2"}, "not_in_channel"),
        ("conversations.list", {"types": "public_channel,secret"}, "invalid_types"),
    ],
)  # fmt: skip
async def test_methods_refuse_by_name(
    method: str, arguments: dict[str, Any], error: str, client: AsyncWebClient, slack: SlackWorld
) -> None:
    """Source: docs.slack.dev/reference/methods, the errors of each."""
    await slack.add_channel("C2", "elsewhere", members=["U1"])
    await slack.add_channel("OLD", "old")
    ours = await client.chat_postMessage(channel="OLD", text="ours")
    await slack.archive("OLD", "U1")
    stamps = {"TS": await slack.say("C1", "U1", "hi"), "OLD_TS": ours["ts"]}
    wanted = {name: stamps.get(value, value) if isinstance(value, str) else value for name, value in arguments.items()}

    with pytest.raises(SlackApiError) as refused:
        await client.api_call(method, json=wanted)

    assert refused.value.response["error"] == error
