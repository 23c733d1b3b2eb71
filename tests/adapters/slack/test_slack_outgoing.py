"""Posting on Slack: the bytes on the wire, what a refusal means, and finding a post that may already be visible."""

import asyncio
import json
from datetime import UTC, datetime

import aiohttp
import pytest
from msgspec.structs import replace
from slack_sdk.errors import SlackApiError

from claudius.adapters.slack.adapter import SlackAdapter
from claudius.adapters.slack.web_api import classify
from claudius.errors import LONGEST_DELAY_S, DeliveryLater, DeliveryRefused, DeliveryUnknown
from ear import Ear
from lab.loopback.slack.state import BOT_TOKEN, BOT_USER
from lab.loopback.slack.world import SlackWorld
from slack_side import reply


@pytest.fixture
async def ts(slack: SlackWorld, ear: Ear) -> str:
    """Return the position of a mention that was heard."""
    said = await slack.say("C1", "U1", "<@U0BOT> hi")
    await ear.until(1)
    return said


async def test_an_app_that_may_not_speak_yet_says_it_once_it_may(
    slack: SlackWorld, ts: str, adapter: SlackAdapter
) -> None:
    """A missing scope is a fault of the installation, not of the reply: the reply waits and is not given up."""
    scopes = await slack.scopes(BOT_TOKEN)
    await slack.allow(BOT_TOKEN, [scope for scope in scopes if scope != "chat:write"])

    with pytest.raises(DeliveryLater):
        await adapter.speak(reply(ts, "hello"))
    await slack.allow(BOT_TOKEN, scopes)
    await adapter.speak(reply(ts, "hello"))

    assert [post.text for post in await slack.visible()] == ["hello"]


async def test_a_server_that_does_not_know_markdown_text_gets_the_older_format(
    slack: SlackWorld, ts: str, adapter: SlackAdapter
) -> None:
    """One call is refused; from then on the older format is used."""
    await slack.fault("chat.postMessage", "error", error="invalid_arguments", where={"markdown_text": None}, times=9)

    await adapter.speak(reply(ts, "**one** < two"))
    await adapter.speak(reply(ts, "**three**", part=1))

    assert [post.text for post in await slack.visible()] == ["*one* &lt; two", "*three*"]
    assert len(await slack.calls("chat.postMessage")) == 3


DONE = ("⏰ Fri 27 Nov 2026, 9:00 Europe/Berlin · a < b · p1", "✎ f7")


async def test_receipts_stand_in_a_context_block_under_the_words(
    slack: SlackWorld, ts: str, adapter: SlackAdapter
) -> None:
    """One post: the words as markdown, then a line an act, in plain text that names no one; found again by its key."""
    said = replace(reply(ts, "**one**"), receipts=DONE)

    posted = await adapter.speak(said)

    (call,) = await slack.calls("chat.postMessage")
    blocks = call.arguments["blocks"]
    words, context = json.loads(blocks) if isinstance(blocks, str) else blocks
    assert words == {"type": "markdown", "text": "**one**"}
    assert (context["type"], [one["text"] for one in context["elements"]]) == ("context", list(DONE))
    assert {one["type"] for one in context["elements"]} == {"plain_text"}
    assert await adapter.find(said, decided_at=datetime.now(UTC)) == posted


async def test_a_server_that_knows_no_markdown_gets_the_receipts_as_text(
    slack: SlackWorld, ts: str, adapter: SlackAdapter
) -> None:
    """They follow after a blank line, and nothing in them is markup."""
    await slack.fault("chat.postMessage", "error", error="invalid_blocks", times=1)

    await adapter.speak(replace(reply(ts, "**one**"), receipts=DONE))

    assert [post.text for post in await slack.visible()] == ["*one*\n\n" + "\n".join(DONE).replace("<", "&lt;")]


@pytest.mark.parametrize("asked", ["1e12", "inf", "nan", "-5", "soon", "0.5e9", ""])
async def test_a_rate_limit_that_names_no_possible_wait_is_a_refusal_all_the_same(
    slack: SlackWorld, ts: str, adapter: SlackAdapter, asked: str
) -> None:
    """A 429 means that nothing was applied, whatever its Retry-After says. The wait is bounded."""
    await slack.fault("chat.postMessage", "rate_limit", retry_after_s=asked, times=9)

    with pytest.raises(DeliveryLater) as told:
        await adapter.speak(reply(ts))

    assert told.value.after_s is not None
    assert 0 < told.value.after_s <= LONGEST_DELAY_S


async def test_a_short_wait_with_a_fraction_is_waited_out(slack: SlackWorld, ts: str, adapter: SlackAdapter) -> None:
    """The library itself reads whole seconds only, and fails on anything else."""
    await slack.fault("chat.postMessage", "rate_limit", retry_after_s="0.1")

    assert await adapter.speak(reply(ts))


async def test_a_token_that_was_taken_back_costs_no_reply(slack: SlackWorld, ts: str, adapter: SlackAdapter) -> None:
    """The reply waits until a person repairs the token."""
    await slack.revoke(BOT_TOKEN)

    with pytest.raises(DeliveryLater):
        await adapter.speak(reply(ts))


async def test_before_slack_said_who_we_are_nothing_is_said(adapter: SlackAdapter) -> None:
    """The reply waits for the connection."""
    with pytest.raises(DeliveryLater):
        await adapter.speak(reply("1767225600.000100"))


def refused(code: str, status: int = 200, **headers: str) -> SlackApiError:
    """Return a refusal by Slack."""

    class Answer:
        """An answer of the Web API."""

        data = {"ok": False, "error": code} if code else {}
        status_code = status

    answer = Answer()
    answer.headers = headers  # type: ignore[attr-defined] # as above
    return SlackApiError("no", answer)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        *((refused(code), DeliveryRefused) for code in ("channel_not_found", "is_archived", "not_in_channel", "msg_too_long", "restricted_action")),
        *((refused(code), DeliveryUnknown) for code in ("fatal_error", "internal_error", "service_unavailable", "request_timeout", "duplicate_message_not_found")),
        *((refused("", status), DeliveryUnknown) for status in (200, 500, 502, 503, 403)),
        *((refused("", status), DeliveryLater) for status in (404, 405, 501)),
        *((refused(code), DeliveryLater) for code in ("ratelimited", "invalid_auth", "account_inactive", "token_revoked")),
        (refused("ratelimited", 429, **{"Retry-After": "7"}), DeliveryLater),
        (aiohttp.ServerDisconnectedError(), DeliveryUnknown),
        (aiohttp.ClientPayloadError(), DeliveryUnknown),
        (TimeoutError(), DeliveryUnknown),
        (ConnectionResetError(), DeliveryUnknown),
    ],
)  # fmt: skip
def test_what_a_failure_means(error: Exception, kind: type[Exception]) -> None:
    """A definite refusal is a refusal; a post that may have been applied never counts as one."""
    assert type(classify(error)) is kind


async def test_a_server_that_is_not_there_was_told_nothing(unused_tcp_port: int) -> None:
    """The first byte was never sent, so the part is posted later without a lookup."""
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError) as refusal:
            await session.post(f"http://127.0.0.1:{unused_tcp_port}/")

    assert isinstance(classify(refusal.value), DeliveryLater)


async def test_members_are_told_without_us(slack: SlackWorld, ear: Ear, adapter: SlackAdapter) -> None:
    """The members are those who can see the channel, or None if Slack does not say."""
    await slack.say("C1", "U1", "hi")
    await ear.until(1)
    await slack.add_channel("C3", "all", members=[BOT_USER, *(f"U{n}" for n in range(10, 30))])

    assert await adapter.members("shared:slack:T1:C1") == ["slack:T1:U1"]
    assert len(await adapter.members("shared:slack:T1:C3") or ()) == 20
    assert await adapter.members("shared:slack:T1:C9") is None
    await slack.fault("conversations.members", "status")
    with pytest.raises(ConnectionError):
        await adapter.members("shared:slack:T1:C1")


@pytest.mark.parametrize("line", ["", "One moment."])
async def test_a_status_is_set_again_before_slack_drops_it(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter, line: str
) -> None:
    """A22: it is refreshed while the soul thinks, with its holding line, and cleared, even if setting it failed once."""
    ts = await slack.say("C1", "U1", "<@U0BOT> hi")
    (heard,) = await ear.until(1)
    assert adapter._inside is not None
    adapter._inside.indicators._refresh_s = 0.05
    await slack.fault("assistant.threads.setStatus", "status")

    await adapter.working(heard, on=True)
    if line:
        await adapter.hold(heard, line)
    await slack.until_called("assistant.threads.setStatus", 4)
    assert await slack.status("C1", ts) == (line or "is thinking…")
    await adapter.working(heard, on=False)
    async with asyncio.timeout(20):
        while await slack.status("C1", ts):
            await asyncio.sleep(0.01)
    assert not await slack.visible()


async def test_eyes_are_put_on_a_direct_message_and_taken_away(
    slack: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """A22: a plain DM has no thread that could show a status."""
    ts = await slack.say("D1", "U1", "hi")
    (heard,) = await ear.until(1)

    await adapter.working(heard, on=True)
    await slack.until_called("reactions.add")
    await adapter.working(heard, on=False)
    await slack.until_called("reactions.remove")

    signs = [(one.kind, one.ts, one.text) for one in await slack.trace() if one.by == "app"]
    assert signs == [("react", ts, "eyes"), ("unreact", ts, "eyes")]
