"""How Slack's events become what the soul hears: a pure table of cases, and what the real client delivers."""

import asyncio
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.adapters.incoming import Ignored
from claudius.adapters.slack.incoming import (
    Goodbye,
    SlackBot,
    SlackMessage,
    Who,
    afterwards,
    conversation_of,
    from_history,
    interpret,
    known,
    perceive,
)
from claudius.adapters.slack.text import mrkdwn, read
from claudius.perception import Kind, MessageExtra, Perception, Standing
from ear import Ear
from lab.loopback.slack.world import SlackWorld

US = SlackBot("T1", "U0BOT", "B0BOT")
PEOPLE = {"U1": Who("ana"), "U2": Who("ben"), "U0BOT": Who("Claudius", is_bot=True)}
TS = "1767225600.000100"


def event(**changes: Any) -> dict[str, Any]:
    """Return a message event."""
    values = {"type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "text": "hello", "ts": TS}
    return {**values, **changes}


def heard(**changes: Any) -> Perception:
    """Return what the soul hears of a message event."""
    said = interpret(event(**changes), US)
    assert isinstance(said, SlackMessage)
    return perceive(said, US, PEOPLE)


def test_a_message_carries_its_speakers_time_zone() -> None:
    """The zone is `tz` of `users.info` if that is text; otherwise there is none."""
    said = interpret(event(), US)
    assert isinstance(said, SlackMessage)

    zones = [perceive(said, US, {"U1": known({"id": "U1", "tz": tz}, US)}).extra for tz in ("Europe/Rome", None, 7)]

    assert [one.zone for one in zones if isinstance(one, MessageExtra)] == ["Europe/Rome", "", ""]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("&lt;b&gt; &amp;amp; &lt;@U1&gt;", "<b> &amp; <@U1>"),
        ("ask <@U2> or <@U9>", "ask @ben or @U9"),
        ("<@U9|eve> knows", "@eve knows"),
        ("see <#C2|ops> and <#C3>", "see #ops and #C3"),
        ("<https://example.org/a?b&amp;c>", "https://example.org/a?b&c"),
        ("<https://example.org|the site>", "the site (https://example.org)"),
        ("<http://example.org|example.org>", "example.org"),
        ("<mailto:ana@example.org|ana@example.org>", "ana@example.org"),
        ("<!here> <!subteam^S1|@ops> <!date^1^{date}|yesterday>", "@here @ops yesterday"),
        ("<@U0BOT> hello", "hello"),
        ("  <@U0BOT>: hello <@U0BOT>", "hello @Claudius"),
        ("<@U0BOT>", ""),
        ("hi <@U0BOT>", "hi @Claudius"),
        ("`code` *bold* _it_ a < b", "`code` *bold* _it_ a < b"),
        ("مرحبا \u202e👩‍👩‍👧 \u0000 x", "مرحبا \u202e👩‍👩‍👧 \u0000 x"),
    ],
)
def test_text_is_decoded_once(raw: str, text: str) -> None:
    """A14: the text is what people see, without anything that they did not write."""
    assert read(raw, "U0BOT", {user: who.name for user, who in PEOPLE.items()}).text == text


@given(st.text(alphabet=st.characters(exclude_characters="<>&"), max_size=300))
def test_text_that_slack_does_not_mark_is_left_alone(text: str) -> None:
    """R26: a text without Slack's markup is stored exactly."""
    assert read(text, "U0BOT", {}).text == text


@pytest.mark.parametrize("length", [40_000])
def test_the_longest_message_is_heard_whole(length: int) -> None:
    """R26: 40,000 characters."""
    assert heard(text="x" * length).text == "x" * length


@pytest.mark.parametrize(
    ("changes", "conversation", "kind", "audience"),
    [
        ({"text": "<@U0BOT> hi"}, f"slack:T1:C1:{TS}", Kind.MENTION, "shared:slack:T1:C1"),
        ({"type": "app_mention", "text": "<@U0BOT> hi", "channel_type": None}, f"slack:T1:C1:{TS}", Kind.MENTION, "shared:slack:T1:C1"),
        ({"text": "hi", "thread_ts": "1.0"}, "slack:T1:C1:1.0", Kind.MESSAGE, "shared:slack:T1:C1"),
        ({"text": "<@U0BOT> hi", "thread_ts": "1.0"}, "slack:T1:C1:1.0", Kind.MENTION, "shared:slack:T1:C1"),
        ({"text": "hi"}, "slack:T1:C1:", Kind.MESSAGE, "shared:slack:T1:C1"),
        ({"text": "hi", "thread_ts": TS}, "slack:T1:C1:", Kind.MESSAGE, "shared:slack:T1:C1"),
        ({"channel": "D1", "channel_type": "im"}, "slack:T1:D1:", Kind.MESSAGE, "private:slack:T1:U1"),
        ({"channel": "D1", "channel_type": "im", "text": "<@U0BOT> hi"}, "slack:T1:D1:", Kind.MESSAGE, "private:slack:T1:U1"),
        ({"channel": "D1", "channel_type": "im", "thread_ts": "1.0"}, "slack:T1:D1:1.0", Kind.MESSAGE, "private:slack:T1:U1"),
        ({"channel": "G1", "channel_type": "mpim"}, "slack:T1:G1:", Kind.MESSAGE, "shared:slack:T1:G1"),
    ],
)  # fmt: skip
def test_each_message_has_its_place(changes: dict[str, Any], conversation: str, kind: Kind, audience: str) -> None:
    """A mention opens a thread and a DM stays a DM.

    The text, never the event's type, decides what a message is owed.
    """
    perception = heard(**changes)

    assert (perception.conversation, perception.kind, perception.audience) == (conversation, kind, audience)
    assert perception.key == f"slack:T1:{changes.get('channel', 'C1')}:{TS}"
    assert (perception.person, perception.name, perception.position) == ("slack:T1:U1", "ana", TS)


@pytest.mark.parametrize(
    ("text", "to_other"), [("<@U2> can you?", True), ("can <@U2>?", False), ("<@U0BOT> <@U2>", False), ("hi", False)]
)
def test_a_message_that_addresses_someone_else_owes_nothing(text: str, *, to_other: bool) -> None:
    """A message that begins by addressing someone else owes nothing."""
    assert heard(text=text).to_other is to_other


def test_names_are_kept_with_their_ids() -> None:
    """The soul reads a name; the code still knows the id behind it."""
    extra = heard(text="<@U2> and <@U9>").extra
    assert isinstance(extra, MessageExtra)
    assert extra.named == {"slack:T1:U2": "ben", "slack:T1:U9": "U9"}


@pytest.mark.parametrize("subtype", [None, "thread_broadcast", "file_share", "me_message", "bot_message"])
def test_these_are_messages(subtype: str | None) -> None:
    """A file with words is also a message, though many programs drop it."""
    assert isinstance(interpret(event(subtype=subtype), US), SlackMessage)


def test_files_are_named() -> None:
    """A file without words is heard as its name."""
    file = {"id": "F1", "name": "plan.png", "mimetype": "image/png", "size": 12}

    assert heard(text="", subtype="file_share", files=[file]).text == "📎 plan.png (image/png, 12 bytes)"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"user": "U0BOT"}, "our own"),
        ({"user": None, "bot_id": "B0BOT", "subtype": "bot_message", "username": "Kothar"}, "our own"),
        ({"subtype": "message_changed", "hidden": True}, "message_changed"),
        ({"subtype": "message_deleted"}, "message_deleted"),
        ({"subtype": "channel_join"}, "channel_join"),
        ({"hidden": True}, "hidden"),
        ({"ts": "nonsense"}, "incomplete"),
        ({"user": None}, "incomplete"),
        ({"user": {"id": "U1"}}, "incomplete"),
        ({"type": "reaction_added"}, "reaction_added"),
        ({"type": "something_new"}, "something_new"),
        ({"type": "tokens_revoked", "tokens": {"oauth": ["U1"]}}, "tokens_revoked"),
    ],
)
def test_meaningless_events_are_counted_by_name(changes: dict[str, Any], what: str) -> None:
    """A6: our own posts (by user id or by bot id alone), unsupported events and unknown events are counted."""
    found = interpret(event(**changes), US)

    assert isinstance(found, Ignored)
    assert found.what == what


def test_a_removed_app_says_goodbye() -> None:
    """The adapter stops."""
    assert interpret({"type": "app_uninstalled"}, US) == Goodbye("app_uninstalled")
    assert interpret({"type": "tokens_revoked", "tokens": {"bot": ["U0BOT"]}}, US) == Goodbye("tokens_revoked")


def test_history_reads_like_live() -> None:
    """A message has the same key and place either way, so a sweep recognises what was heard live."""
    live = heard(text="<@U0BOT> hi", thread_ts="1.0")
    past = from_history(
        {"type": "message", "user": "U1", "text": "<@U0BOT> hi", "ts": TS, "thread_ts": "1.0"}, "C1", US
    )

    assert isinstance(past, SlackMessage)
    assert perceive(past, US, PEOPLE) == live


@pytest.mark.parametrize(
    ("user", "standing"),
    [
        ({}, Standing.MEMBER),
        ({"is_restricted": True}, Standing.GUEST),
        ({"is_restricted": True, "is_ultra_restricted": True}, Standing.GUEST),
        ({"is_stranger": True}, Standing.OUTSIDER),
        ({"team_id": "T9"}, Standing.OUTSIDER),
        ({"deleted": True}, Standing.GONE),
    ],
)
def test_slack_says_who_somebody_is(user: dict[str, Any], standing: Standing) -> None:
    """These flags alone decide who may talk."""
    assert known({"id": "U1", "name": "ana", "team_id": "T1", **user}, US) == Who("ana", standing)


@pytest.mark.parametrize(("enterprise", "standing"), [("E1", Standing.MEMBER), ("E2", Standing.OUTSIDER)])
def test_another_workspace_of_the_same_organisation_is_not_foreign(enterprise: str, standing: Standing) -> None:
    """Enterprise Grid: one organisation, many team ids."""
    user = {"name": "ana", "team_id": "T2", "enterprise_user": {"enterprise_id": enterprise}}

    assert known(user, SlackBot("T1", "U0BOT", "B0BOT", "E1")).standing is standing


def test_a_message_names_its_speakers_team() -> None:
    """Connect people are outsiders even where users.info says nothing."""
    assert heard(user_team="T9").standing is Standing.OUTSIDER
    assert heard(source_team="T9").standing is Standing.OUTSIDER
    assert heard(user_team="T1", source_team="T1").standing is Standing.MEMBER


def test_a_bot_is_a_bot() -> None:
    """A bot is recognised by its user, by its bot id alone, and in Slackbot's case although nothing marks it."""
    assert heard(user="U0OTHER", bot_id="B1").is_bot
    assert heard(user=None, bot_id="B1", subtype="bot_message", username="CI").name == "CI"
    assert heard(user="USLACKBOT").is_bot
    assert not heard().is_bot


def test_a_conversation_key_needs_no_event_type() -> None:
    """`app_mention` and `message` arrive in either order."""
    one, two = (interpret(event(type=kind, text="<@U0BOT> x"), US) for kind in ("message", "app_mention"))

    assert isinstance(one, SlackMessage)
    assert isinstance(two, SlackMessage)
    assert conversation_of(one, US, is_called=True) == conversation_of(two, US, is_called=True)


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("**bold** and ~~gone~~", "*bold* and ~gone~"),
        ("# Title\n- one\n* two", "*Title*\n• one\n• two"),
        ("[the site](https://example.org/a)", "<https://example.org/a|the site>"),
        ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
        ("`**x** < y`", "`**x** &lt; y`"),
        ("```py\n# a < b\n```", "```\n# a &lt; b\n```"),
        ("> quoted", "> quoted"),
        ("<!channel> <@U1>", "&lt;!channel&gt; &lt;@U1&gt;"),
    ],
)
def test_markdown_becomes_slacks_older_format(markdown: str, text: str) -> None:
    """For a server without markdown_text the text is escaped, so that none of it becomes Slack's own markup."""
    assert mrkdwn(markdown) == text


async def test_comings_and_goings_are_heard(slack: SlackWorld, ear: Ear) -> None:
    """Who can see the channel now decides what may be shown there."""
    await slack.add_user("U2", "ben")
    await slack.join("C1", "U2")
    await slack.leave("C1", "U2")
    heard = await ear.until(2)

    assert [(one.kind, one.person, one.audience, one.owes) for one in heard] == [
        (kind, "slack:T1:U2", "shared:slack:T1:C1", False) for kind in (Kind.JOIN, Kind.LEAVE)
    ]


async def test_a_deletion_without_a_time_deletes_nothing() -> None:
    """A message is named by its time; what has none, or one of another shape, was never sent."""
    gone = {"type": "message", "subtype": "message_deleted", "channel": "C1", "event_ts": "1700000000.000001"}

    for ts in ("x", "1e999", "9" * 400):
        assert isinstance(await afterwards(gone | {"deleted_ts": ts}, US, AsyncMock()), Ignored)


async def test_meaningless_events_are_acknowledged_and_counted(slack: SlackWorld, ear: Ear, adapter: Any) -> None:
    """Slack need not redeliver an unknown button or an event without meaning. Commands and App Home views are heard."""
    ts = await slack.say("D1", "U1", "hello")
    await ear.until(1)
    await slack.unfurl("D1", ts)
    await slack.react("D1", ts, "U1", "eyes")
    await slack.open_home("U1")
    await slack.click("D1", "", "U1", "button")
    trigger = await slack.slash("D1", "U1", "/claudius", "whoami")
    await slack.until_fate("acked", 6)
    await slack.until_quiet()

    assert set(adapter.ignored) == {"nothing of it has gone", "a reaction of no meaning to us", "block_actions"}
    assert [key.rpartition(":")[0] for key in ear.told[1:]] == ["slack:home:slack:T1:U1", "slack:cmd"]
    assert ear.told[2] == f"slack:cmd:{trigger}"


async def test_a_message_of_an_unknown_speaker_waits_for_users_info(slack: SlackWorld, make: Any) -> None:
    """On first contact the message waits for users.info. Without an answer there is no ack, and Slack redelivers it."""
    await slack.fault("users.list", "error", error="missing_scope", times=9)
    await slack.fault("users.info", "status")
    adapter, ear = make(), Ear()
    listening = asyncio.create_task(adapter.listen(ear.accept))
    await slack.until_connected()
    await slack.say("D1", "U1", "hello")
    (heard,) = await ear.until(1)
    await slack.until_quiet()
    await adapter.close()
    await listening

    assert heard.standing is Standing.MEMBER
    assert [one.fate for one in await slack.deliveries()] == ["timeout", "acked"]
