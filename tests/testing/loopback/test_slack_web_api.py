"""The Web API of the Slack on loopback, through Slack's own client: what it does, refuses and breaks."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncConnectionErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient

from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import APP_TOKEN, BOT_TOKEN, BOT_USER, TEAM
from lab.loopback.slack.world import SlackWorld

KEY = {"event_type": "claudius_turn", "event_payload": {"key": "k1", "part": 0}}


async def _error(client: AsyncWebClient, method: str, arguments: dict[str, Any]) -> str:
    with pytest.raises(SlackApiError) as refused:
        await client.api_call(method, json=arguments)
    return str(refused.value.response["error"])


async def test_the_app_learns_who_it_is_and_what_it_may(client: AsyncWebClient) -> None:
    """`auth.test` names team and bot, and its header the scopes."""
    answer = await client.auth_test()

    assert (answer["team_id"], answer["user_id"], answer["bot_id"]) == (TEAM, BOT_USER, "B0BOT")
    assert "chat:write" in answer.headers["x-oauth-scopes"].split(",")


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


async def test_a_token_that_was_taken_back_opens_nothing(client: AsyncWebClient, slack: SlackWorld) -> None:
    """After the app was removed."""
    await slack.uninstall()

    assert await _error(client, "auth.test", {}) == "account_inactive"


async def test_a_scope_that_is_missing_is_named(client: AsyncWebClient, slack: SlackWorld) -> None:
    """With what was needed and what was there; by the kind of the conversation."""
    await slack.allow(BOT_TOKEN, ["chat:write", "im:history"])

    with pytest.raises(SlackApiError) as refused:
        await client.conversations_history(channel="C1")
    await client.conversations_history(channel="D1")

    answer = refused.value.response
    assert (answer["error"], answer["needed"]) == ("missing_scope", "channels:history")
    assert answer["provided"] == "chat:write,im:history"


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
        ({"channel": "C1", "text": "a", "username": "Echo"}, "missing_scope"),
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


async def test_an_unknown_argument_is_noted_or_refused(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Taken no notice of by default, `invalid_arguments` where so set."""
    await client.api_call("chat.postMessage", json={"channel": "C1", "text": "a", "colour": "red"})
    (call,) = await slack.calls("chat.postMessage")
    await slack.set(unknown_arguments="refuse")

    assert call.unknown == ["colour"]
    assert (
        await _error(client, "chat.postMessage", {"channel": "C1", "text": "b", "colour": "red"}) == "invalid_arguments"
    )


async def test_a_post_is_visible_with_all_that_came_with_it(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Text, thread, metadata and the bytes of the request are in the record; forms are read as well as JSON."""
    ts = await slack.say("C1", "U1", "a question")
    await client.chat_postMessage(
        channel="C1", markdown_text="**bold**", thread_ts=ts, metadata=KEY, unfurl_links=False
    )
    form = {"channel": "C1", "text": "form", "metadata": '{"event_type": "e", "event_payload": {}}'}
    await client.api_call("chat.postMessage", data=form)

    said, shown, other = await slack.trace()

    assert (said.by, shown.by, said.ts < shown.ts < other.ts) == ("person", "app", True)
    assert (shown.thread_ts, shown.markdown_text, shown.metadata) == (ts, "**bold**", KEY)
    assert b'"unfurl_links"' in shown.raw
    assert (other.text, other.metadata) == ("form", {"event_type": "e", "event_payload": {}})


async def test_a_reply_to_what_is_gone_lands_in_the_channel(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Slack un-threads it without a word (slack-go#1571); only the answer's missing `thread_ts` tells."""
    ts = await slack.say("C1", "U1", "never mind")
    await slack.delete("C1", ts)

    answer = await client.chat_postMessage(channel="C1", text="an answer", thread_ts=ts)

    assert "thread_ts" not in answer["message"]


async def test_a_text_over_the_limit_is_cut_with_a_warning(client: AsyncWebClient, slack: SlackWorld) -> None:
    """40,000 characters stand."""
    answer = await client.chat_postMessage(channel="C1", text="x" * 40_001)

    (message,) = await slack.messages("C1")
    assert (answer["warning"], len(message["text"])) == ("message_truncated", 40_000)


async def test_every_text_comes_through_whole(client: AsyncWebClient, slack: SlackWorld) -> None:
    """NUL, a lone surrogate, right-to-left, joined emoji: what is sent is what stands."""
    text = "a\x00b \ud800 \u202eevil\u202c \U0001f469\u200d\U0001f469\u200d\U0001f467 &amp; <@U1>"

    await client.chat_postMessage(channel="C1", text=text)

    assert [message["text"] for message in await slack.messages("C1")] == [text]


async def test_history_is_paged_and_bounded(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Newest first; ends belong to the span only if so asked; with `oldest` alone the pages begin at the old end."""
    stamps = [await slack.say("C1", "U1", str(number)) for number in range(5)]
    await slack.say("C1", "U1", "in a thread", thread_ts=stamps[0])

    async def read(**arguments: Any) -> list[list[str]]:
        """Give the texts, page by page."""
        pages = await client.conversations_history(channel="C1", **arguments)
        return [[message["text"] for message in page["messages"]] async for page in pages]

    assert await read() == [["4", "3", "2", "1", "0"]]
    assert await read(limit=2) == [["4", "3"], ["2", "1"], ["0"]]
    assert await read(limit=2, oldest=stamps[0]) == [["2", "1"], ["4", "3"]]
    assert await read(oldest=stamps[1], latest=stamps[3]) == [["2"]]
    assert await read(oldest=stamps[1], latest=stamps[3], inclusive=True) == [["3", "2", "1"]]
    assert await _error(client, "conversations.history", {"channel": "C1", "cursor": "?"}) == "invalid_cursor"
    assert await _error(client, "conversations.history", {"channel": "C1", "oldest": "soon"}) == "invalid_ts_oldest"


async def test_a_thread_is_read_with_counts_and_metadata(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Oldest first, the parent always there; metadata only where asked for."""
    ts = await slack.say("C1", "U1", "a question")
    ours = await client.chat_postMessage(channel="C1", text="an answer", thread_ts=ts, metadata=KEY)

    plain = await client.conversations_replies(channel="C1", ts=ts)
    whole = await client.conversations_replies(channel="C1", ts=ours["ts"], oldest=ts, include_all_metadata=True)
    (parent,) = (await client.conversations_history(channel="C1"))["messages"]

    assert [message.get("metadata") for message in plain["messages"]] == [None, None]
    assert [message.get("metadata") for message in whole["messages"]] == [None, KEY]
    assert (parent["reply_count"], parent["latest_reply"], parent["reply_users"]) == (1, ours["ts"], [BOT_USER])
    assert await _error(client, "conversations.replies", {"channel": "C1", "ts": "1.000000"}) == "thread_not_found"


async def test_our_own_messages_can_be_changed_and_taken_down(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Others' cannot; metadata stay unless new ones are given."""
    theirs = await slack.say("C1", "U1", "mine")
    ours = (await client.chat_postMessage(channel="C1", text="draft", metadata=KEY))["ts"]
    await client.chat_update(channel="C1", ts=ours, text="final")

    _, message = await slack.messages("C1")
    assert (message["text"], message["metadata"], message["edited"]["user"]) == ("final", KEY, BOT_USER)
    assert await _error(client, "chat.update", {"channel": "C1", "ts": theirs, "text": "x"}) == "cant_update_message"
    assert await _error(client, "chat.update", {"channel": "C1", "ts": ours, "text": "x" * 4001}) == "msg_too_long"
    await client.chat_delete(channel="C1", ts=ours)
    assert await _error(client, "chat.delete", {"channel": "C1", "ts": ours}) == "message_not_found"


async def test_people_are_shown_with_what_bars_them(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Guest, outsider, deactivated, bot: each by its flag."""
    await slack.add_user("U2", "gil", is_ultra_restricted=True)
    await slack.add_user("U3", "sam", is_stranger=True, team="T2")
    await slack.add_user("U4", "dee", deleted=True)
    await slack.add_user("U5", "hal", is_bot=True, bot_id="B5")

    users = {user: (await client.users_info(user=user))["user"] for user in ("U1", "U2", "U3", "U4", "U5")}
    listed = (await client.users_list())["members"]

    assert not users["U1"]["is_restricted"]
    assert (users["U2"]["is_restricted"], users["U2"]["is_ultra_restricted"]) == (True, True)
    assert (users["U3"]["is_stranger"], users["U3"]["team_id"]) == (True, "T2")
    assert users["U4"]["deleted"]
    assert users["U5"]["is_bot"]
    assert [user["id"] for user in listed] == [BOT_USER, "U1", "U2", "U4", "U5"]
    assert await _error(client, "users.info", {"user": "U9"}) == "user_not_found"


async def test_conversations_are_listed_opened_and_joined(client: AsyncWebClient, slack: SlackWorld) -> None:
    """By type; a private one only where the app is."""
    await slack.add_channel("G1", "secret", kind="group", members=["U1"])
    await slack.add_channel("C2", "elsewhere", members=["U1"])

    everything = "public_channel,private_channel,im,mpim"
    seen = [one["id"] for one in (await client.conversations_list(types=everything))["channels"]]
    own = [one["id"] for one in (await client.users_conversations(types=everything))["channels"]]
    await client.conversations_join(channel="C2")
    members = (await client.conversations_members(channel="C2"))["members"]
    dm = (await client.conversations_open(users="U1"))["channel"]["id"]
    info = (await client.conversations_info(channel="D1"))["channel"]

    assert (seen, own) == (["C1", "D1", "C2"], ["C1", "D1"])
    assert members == ["U1", BOT_USER]
    assert (dm, info["user"], info["is_im"]) == ("D1", "U1", True)


async def test_reactions_are_put_on_and_taken_off_once(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Twice is an error by name."""
    ts = await slack.say("C1", "U1", "hi")
    arguments = {"channel": "C1", "timestamp": ts, "name": "eyes"}
    await client.reactions_add(**arguments)

    assert await _error(client, "reactions.add", arguments) == "already_reacted"
    await client.reactions_remove(**arguments)
    assert await _error(client, "reactions.remove", arguments) == "no_reaction"
    assert await _error(client, "reactions.add", arguments | {"timestamp": "1.000000"}) == "message_not_found"


async def test_a_status_ends_by_our_post_or_by_time(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Two minutes at most; the post of another thread does not end it."""
    ts = await slack.say("C1", "U1", "hi")
    await client.assistant_threads_setStatus(channel_id="C1", thread_ts=ts, status="thinks")
    await client.chat_postMessage(channel="C1", text="elsewhere")
    shown = await slack.status("C1", ts)
    await slack.shift_clock(121)
    late = await slack.status("C1", ts)
    await client.assistant_threads_setStatus(channel_id="C1", thread_ts=ts, status="thinks")
    await client.chat_postMessage(channel="C1", text="here", thread_ts=ts)

    assert (shown, late, await slack.status("C1", ts)) == ("thinks", "", "")
    arguments = {"channel_id": "C1", "thread_ts": "1.000000", "status": "x"}
    assert await _error(client, "assistant.threads.setStatus", arguments) == "invalid_thread_ts"


async def test_a_home_and_an_ephemeral_word_are_for_one_person(client: AsyncWebClient, slack: SlackWorld) -> None:
    """They are in no history."""
    await client.views_publish(user_id="U1", view={"type": "home", "blocks": []})
    await client.chat_postEphemeral(channel="C1", user="U1", text="psst")

    assert [(entry.kind, entry.to) for entry in await slack.trace()] == [("home", "U1"), ("ephemeral", "U1")]
    assert (await slack.home("U1"))["type"] == "home"
    assert await slack.messages("C1") == []
    assert (
        await _error(client, "chat.postEphemeral", {"channel": "C1", "user": "U9", "text": "x"})
        == "user_not_in_channel"
    )


async def test_a_file_is_given_to_who_shows_the_token(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Without one there is a page that asks to sign in; a file of Slack Connect is whole in `files.info` only."""
    await slack.upload("D1", "U1", "notes.txt", b"remember", text="here")
    await slack.upload("D1", "U1", "far.txt", b"away", is_connect=True)
    near, far = (message["files"][0] for message in await slack.messages("D1"))
    asked = (await client.files_info(file=far["id"]))["file"]

    async with aiohttp.ClientSession() as session:
        async with session.get(near["url_private_download"], headers={"Authorization": f"Bearer {BOT_TOKEN}"}) as got:
            content = await got.read()
        async with session.get(near["url_private_download"]) as page:
            kind = page.content_type

    assert (content, kind, near["size"]) == (b"remember", "text/html", 8)
    assert (far["file_access"], "url_private" in far, asked["name"]) == ("check_file_info", False, "far.txt")


async def test_a_429_is_waited_for(client: AsyncWebClient, slack: SlackWorld) -> None:
    """The client comes again after Retry-After, and not before."""
    await slack.fault("chat.postMessage", "rate_limit", retry_after_s=1)

    await client.chat_postMessage(channel="C1", text="patient")

    first, second = await slack.calls("chat.postMessage")
    assert (first.status, second.status, first.is_applied, second.is_applied) == (429, 200, False, True)
    assert second.at - first.at >= 1


async def test_limits_are_held_by_channel(client: AsyncWebClient, slack: SlackWorld) -> None:
    """One message a second and channel; another channel is free."""
    client.retry_handlers = []
    await slack.limit("chat.postMessage", 1, 60.0, is_by_channel=True)
    await client.chat_postMessage(channel="C1", text="one")

    with pytest.raises(SlackApiError) as refused:
        await client.chat_postMessage(channel="C1", text="two")
    await client.chat_postMessage(channel="D1", text="three")

    assert refused.value.response.status_code == 429
    assert 0 < int(refused.value.response.headers["Retry-After"]) <= 60
    assert [entry.text for entry in await slack.visible()] == ["one", "three"]


@pytest.mark.parametrize("is_applied", [False, True])
@pytest.mark.parametrize(
    ("kind", "facts", "raised"),
    [
        ("status", {"status": 500}, SlackApiError),
        ("status", {"status": 503}, SlackApiError),
        ("reset", {}, aiohttp.ClientError),
        ("cut", {}, aiohttp.ClientError),
        ("bad_json", {}, SlackApiError),
        ("error", {"error": "fatal_error"}, SlackApiError),
        ("hang", {}, TimeoutError),
    ],
)
async def test_faults_come_before_or_after_the_post_is_visible(
    *,
    kind: Any,
    facts: dict[str, Any],
    raised: type[Exception],
    is_applied: bool,
    client: AsyncWebClient,
    slack: SlackWorld,
) -> None:
    """The caller sees the same; the record knows whether it was applied; once, then all is well again."""
    client.timeout = 0.3 if kind == "hang" else 3
    await slack.fault("chat.postMessage", kind, is_applied=is_applied, **facts)

    with pytest.raises(raised):
        await client.chat_postMessage(channel="C1", text="perhaps", metadata=KEY)
    client.timeout = 3
    await slack.until_visible(int(is_applied))
    seen = await client.conversations_history(channel="C1", include_all_metadata=True)
    await client.chat_postMessage(channel="C1", text="surely")

    assert [message["metadata"] for message in seen["messages"]] == [KEY] * is_applied
    assert [call.is_applied for call in await slack.calls("chat.postMessage")] == [is_applied, True]


async def test_the_clients_own_retry_after_a_reset_posts_twice(client: AsyncWebClient, slack: SlackWorld) -> None:
    """Why that handler must go: the reset came after the post was applied."""
    client.retry_handlers = [AsyncConnectionErrorRetryHandler()]
    await slack.fault("chat.postMessage", "reset", is_applied=True)

    await client.chat_postMessage(channel="C1", text="echo")

    assert [entry.text for entry in await slack.visible()] == ["echo", "echo"]


async def test_faults_choose_their_calls(client: AsyncWebClient, slack: SlackWorld) -> None:
    """By method, by arguments, after some, so many times."""
    where = {"channel": "C1", "markdown_text": None}
    await slack.fault("chat.postMessage", "error", error="invalid_arguments", skip=1, times=2, where=where)

    outcomes = []
    for number, arguments in enumerate([{"markdown_text": "a"}, {"text": "b"}, *[{"markdown_text": "c"}] * 3]):
        try:
            await client.chat_postMessage(channel="C1", **arguments)
        except SlackApiError:
            outcomes.append(number)

    assert outcomes == [2, 3]


async def test_a_call_whose_caller_left_is_carried_out_all_the_same(client: AsyncWebClient, slack: SlackWorld) -> None:
    """As the real service does: a timeout says nothing about what became of the post."""
    client.timeout = 0.3
    await slack.fault("chat.postMessage", "delay", delay_s=0.5)

    with pytest.raises(TimeoutError):
        await client.chat_postMessage(channel="C1", text="late")

    (entry,) = await slack.until_visible(1)
    assert entry.text == "late"
