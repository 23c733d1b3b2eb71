"""What the Slack on loopback refuses, method by method, by the names of Slack's documents."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import BOT_TOKEN
from lab.loopback.slack.world import SlackWorld

JSON = "application/json; charset=utf-8"
FORM = "application/x-www-form-urlencoded"
TALL = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3_001}}


async def _raw(server: SlackServer, method: str, kind: str, body: bytes) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {BOT_TOKEN}", "Content-Type": kind}
    url = f"{server.base_url}{method}"
    async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as response:
        return dict(await response.json())


@pytest.mark.parametrize(
    ("kind", "body", "error"),
    [
        (JSON, b"{", "invalid_json"),
        (JSON, b"[]", "json_not_object"),
        ("text/csv", b"a,b", "invalid_post_type"),
        (FORM, b"channel=C1&blocks=%5B", "invalid_blocks_format"),
        (FORM, b"channel=C1&metadata=%7B", "invalid_metadata_format"),
        (FORM, b"channel=C1&attachments=%7B", "invalid_arguments"),
    ],
)
async def test_a_body_must_be_what_it_says(kind: str, body: bytes, error: str, server: SlackServer) -> None:
    """Each way of being broken has its error."""
    assert (await _raw(server, "chat.postMessage", kind, body))["error"] == error


@pytest.mark.parametrize(
    ("kind", "body", "warning"),
    [
        ("application/json", b"{}", "missing_charset"),
        (f"{FORM}; charset=utf-8", b"a=b", "superfluous_charset"),
        (JSON, b"{}", None),
        (FORM, b"a=b", None),
    ],
)
async def test_charsets_are_complained_of(kind: str, body: bytes, warning: str | None, server: SlackServer) -> None:
    """As a warning beside the answer, which is good all the same."""
    answer = await _raw(server, "auth.test", kind, body)

    assert (answer["ok"], answer.get("warning")) == (True, warning)


async def test_a_token_may_stand_among_the_arguments(server: SlackServer) -> None:
    """Where there is none in the header; and `api.test` asks for none."""
    client = AsyncWebClient(base_url=server.base_url)

    answer = await client.api_call("auth.test", data={"token": BOT_TOKEN})
    echo = await client.api_test(foo="bar")

    assert answer["ok"]
    assert echo["args"] == {"foo": "bar"}
    with pytest.raises(SlackApiError, match="my_error"):
        await client.api_test(error="my_error")


@pytest.mark.parametrize(
    ("method", "arguments", "error"),
    [
        ("reactions.add", {"channel": "", "timestamp": "", "name": "x"}, "no_item_specified"),
        ("reactions.add", {"channel": "C1", "timestamp": "TS", "name": "two words"}, "invalid_name"),
        ("reactions.add", {"channel": "OLD", "timestamp": "OLD_TS", "name": "eyes"}, "is_archived"),
        ("chat.update", {"channel": "OLD", "ts": "OLD_TS", "text": "x"}, "is_inactive"),
        ("chat.postMessage", {"channel": "C1", "text": "x", "blocks": [TALL]}, "invalid_blocks"),
        ("chat.startStream", {"channel": "OLD", "thread_ts": "OLD_TS"}, "is_archived"),
        ("assistant.threads.setStatus", {"channel_id": "C1", "thread_ts": "TS", "status": "x", "loading_messages": ["y"] * 11}, "invalid_arguments"),
        ("views.publish", {"user_id": "U9", "view": {}}, "user_not_found"),
        ("views.publish", {"user_id": "U1", "view": {"type": "modal"}}, "invalid_arguments"),
        ("files.info", {"file": "F9"}, "file_not_found"),
        ("conversations.history", {"channel": "C1", "limit": 1000}, "invalid_limit"),
        ("conversations.history", {"channel": "C1", "limit": "many"}, "invalid_arguments"),
        ("conversations.history", {"channel": "C2"}, "not_in_channel"),
        ("conversations.list", {"types": "public_channel,secret"}, "invalid_types"),
        ("conversations.open", {}, "users_list_not_supplied"),
        ("conversations.open", {"users": "U9"}, "user_not_found"),
        ("conversations.open", {"users": "U1,U2"}, "method_not_supported_for_channel_type"),
        ("conversations.join", {"channel": "D1"}, "method_not_supported_for_channel_type"),
        ("conversations.join", {"channel": "OLD"}, "is_archived"),
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


async def test_a_stream_keeps_to_its_form(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Text or chunks, known ones, of bearable length, and always something."""
    ts = await slack.say("D1", "U1", "tell me")
    stream = await client.chat_startStream(channel="D1", thread_ts=ts, markdown_text="Once ")
    where = {"channel": "D1", "ts": stream["ts"]}
    errors = []
    for arguments in (
        {},
        {"markdown_text": "x" * 12_001},
        {"chunks": [{"type": "song"}]},
        {"chunks": [{"type": "markdown_text", "text": "upon"}]},
        {"ts": ts, "markdown_text": "x"},
    ):
        with pytest.raises(SlackApiError) as refused:
            await client.api_call("chat.appendStream", json=where | arguments)
        errors.append(refused.value.response["error"])

    assert errors == [
        "no_text",
        "msg_too_long",
        "streaming_mode_mismatch",
        "streaming_mode_mismatch",
        "message_not_owned_by_app",
    ]


async def test_a_home_that_was_changed_meanwhile_is_kept(client: AsyncWebClient) -> None:
    """An old hash does not overwrite it."""
    view = {"type": "home", "blocks": []}
    old = (await client.views_publish(user_id="U1", view=view))["view"]["hash"]
    await client.views_publish(user_id="U1", view=view, hash=old)

    with pytest.raises(SlackApiError, match="hash_conflict"):
        await client.views_publish(user_id="U1", view=view, hash=old)


async def test_blocks_can_be_changed_and_a_name_of_a_person_is_a_dm(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Blocks alone leave no mark of an edit; a post to a person goes into the DM."""
    block = {"type": "section", "text": {"type": "mrkdwn", "text": "new"}}
    posted = await client.chat_postMessage(channel="U1", text="old", blocks=[{"type": "divider"}])
    await client.api_call("chat.update", json={"channel": "D1", "ts": posted["ts"], "blocks": [block]})

    (message,) = await slack.messages("D1")

    assert posted["channel"] == "D1"
    assert (message["blocks"], "edited" in message) == ([block], False)


async def test_a_place_of_answers_can_fail_and_grow_old(server: SlackServer, slack: SlackWorld) -> None:
    """After half an hour it is void; an answer for all stands in the channel; faults reach it too."""
    await slack.slash("C1", "U1", "/claudius", "why")
    (key,) = server.service.replies
    url = f"{server.service.url}/response/{key}"
    await slack.fault("response_url", "status", status=503)
    statuses = []
    async with aiohttp.ClientSession() as session:
        for address in (url, url, url + "x"):
            async with session.post(address, json={"text": "so", "response_type": "in_channel"}) as response:
                statuses.append(response.status)
        await slack.shift_clock(1801)
        async with session.post(url, json={"text": "late"}) as response:
            statuses.append(response.status)

    assert statuses == [503, 200, 404, 404]
    assert [message["text"] for message in await slack.messages("C1")] == ["so"]


async def test_all_trouble_can_be_taken_back(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Faults, refusals and held events of the past are gone."""
    await slack.fault("*", "error", times=9)
    await slack.refuse_upgrades(-1)
    await slack.spoil_tickets(-1)
    await slack.hold_events()
    await slack.say("D1", "U1", "held")
    await slack.heal()

    await client.auth_test()

    assert {one.channel for one in await slack.until_fate("offline", 1)} == {"D1"}
