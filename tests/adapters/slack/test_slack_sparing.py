"""A Slack that sends only what it must: no field that it omits costs a reply, doubles one, or keeps one waiting."""

from datetime import UTC, datetime
from typing import Any

import pytest

from claudius.adapters.slack.adapter import SlackAdapter
from claudius.adapters.slack.commands import commanded
from claudius.adapters.slack.incoming import SlackBot, Who, timed
from claudius.intent import Utterance
from claudius.perception import CommandExtra, Kind, ReactionExtra, amended_key
from claudius.providers.scripted import Line, Scripted
from ear import Ear, echo
from lab.loopback.slack.state import BOT_USER
from lab.loopback.slack.world import SlackWorld
from slack_side import Wake, reply, said

US = SlackBot("T1", BOT_USER, "B1")
NOW = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
async def sparing(slack: SlackWorld) -> SlackWorld:
    """Have Slack omit every field that no one can rely on."""
    await slack.set(is_sparing=True)
    return slack


def utterance(body: str, trigger: str, part: int = 0) -> Utterance:
    """Return one part of a reply in a DM."""
    return reply(trigger, body, channel="D1", thread="", part=part)


async def test_a_post_whose_answer_holds_nothing_is_said_once(sparing: SlackWorld, wake: Wake) -> None:
    """An answer that says ok is proof; a second post would appear twice."""
    async with wake() as soul:
        await sparing.say("D1", "U1", "hello")
        await sparing.until_called("chat.postMessage", 1)
        await soul.idle()
        counts = soul.records().counts(soul.mind.clock())

    assert await said(sparing) == [("D1", None, "re hello")]
    assert (counts["outbox"]["pending"], counts["inbox"]["pending"]) == (0, 0)


async def test_where_no_keys_are_shown_a_post_is_found_by_its_words(
    sparing: SlackWorld, ear: Ear, adapter: SlackAdapter
) -> None:
    """A post that may be visible is not repeated just because the server hides its metadata."""
    trigger = await sparing.say("D1", "U1", "hi")
    await adapter.speak(utterance("**Bold** & `x < y`, [here](https://example.org/)", trigger))

    found = await adapter.find(utterance("**Bold** & `x < y`, [here](https://example.org/)", trigger), decided_at=NOW)
    other = await adapter.find(utterance("something else", trigger, 1), decided_at=NOW)

    assert [one.ts for one in await sparing.visible()] == [found]
    assert other is None


async def test_edits_deletions_and_stops_need_no_optional_fields(sparing: SlackWorld, ear: Ear) -> None:
    """An edit lacks `edited`, a deletion `deleted_ts`, a stop `item_user`, and none of them has a time."""
    ts = await sparing.say("D1", "U1", "old")
    await ear.until(1)
    await sparing.edit("D1", ts, "new")
    await sparing.react("D1", ts, "U1", "octagonal_sign")
    await sparing.unfurl("D1", ts)
    await sparing.delete("D1", ts)
    heard = (await ear.until(5))[1:]

    assert {one.kind: amended_key(one) for one in heard} == dict.fromkeys(
        (Kind.EDIT, Kind.REACTION, Kind.DELETE), f"slack:T1:D1:{ts}"
    )


async def test_a_preview_while_the_soul_thinks_costs_no_second_call(sparing: SlackWorld, wake: Wake) -> None:
    """Slack reports the preview as a change: the words are the same, so the turn goes on."""
    voice = Scripted(default=lambda asked: Line(hang=True) if "hang on" in asked.tail else echo(asked))
    async with wake(voice=voice, clean=False):
        ts = await sparing.say("D1", "U1", "hang on http://example.org")
        await sparing.until_called("reactions.add", 1)
        await sparing.unfurl("D1", ts)
        await sparing.say("C1", "U1", "<@U0BOT> hello")
        await sparing.until_called("chat.postMessage", 1)

    assert len(voice.requests) == 2


async def test_a_reaction_that_names_no_author_is_about_what_was_said(sparing: SlackWorld, ear: Ear) -> None:
    """The store knows whether that post was ours."""
    ts = await sparing.say("D1", "U1", "hello")
    await sparing.react("D1", ts, "U1", "+1")
    heard = (await ear.until(2))[1]

    assert (heard.kind, heard.extra) == (Kind.REACTION, ReactionExtra(emoji="👍", is_on=True, receipt=ts))


async def test_a_join_without_a_time_is_heard(sparing: SlackWorld, ear: Ear) -> None:
    """In Slack's own example `member_joined_channel` has no time, but the payload around it has one."""
    await sparing.add_user("U2", "ben")
    await sparing.join("C1", "U2")

    assert [(one.kind, one.person) for one in await ear.until(1)] == [(Kind.JOIN, "slack:T1:U2")]


def test_an_event_takes_the_best_time_available() -> None:
    """The time is the event's own, else its message's, else the payload's, else now."""
    own = {"event": {"type": "x", "event_ts": "1767600000.000001", "ts": "1767600009.000001"}}

    def at(body: dict[str, Any]) -> str:
        return str(timed(body, 5.0)["event"]["event_ts"])

    assert timed(own, 5.0) is own
    assert at({"event": {"event_ts": 7, "ts": "1767600009.000001"}}) == "1767600009.000001"
    assert at({"event": {}, "event_time": 1767600000}) == "1767600000.000000"
    assert at({"event": {"ts": "zzz"}}) == "5.000000"
    assert timed({"command": "/claudius"}, 5.0) == {"command": "/claudius"}


async def test_commands_without_an_address_are_each_answered_to_whoever_asked(sparing: SlackWorld, wake: Wake) -> None:
    """Without `response_url` no one else sees the answer. Without `trigger_id` two commands are still two."""
    async with wake():
        await sparing.say("C1", "U1", "here")
        await sparing.slash("C1", "U1", "/claudius", "whoami")
        await sparing.until_called("chat.postEphemeral", 1)
        await sparing.slash("C1", "U1", "/ensoul", "status")
        await sparing.until_called("chat.postEphemeral", 2)

    shown = [(entry.to, entry.channel) for entry in await sparing.trace() if entry.kind == "ephemeral"]
    assert shown == [("U1", "C1"), ("U1", "C1")]
    assert [one for one in await sparing.visible() if not one.to] == []


async def test_a_refused_response_url_has_a_fallback(slack: SlackWorld, wake: Wake) -> None:
    """If `response_url` is refused, the answer is ephemeral in the channel; if that is refused, a direct message."""
    async with wake():
        await slack.fault("response_url", "status", status=404, times=2)
        await slack.slash("C1", "U1", "/claudius", "whoami")
        await slack.until_called("chat.postEphemeral", 1)
        await slack.fault("chat.postEphemeral", "status", status=404)
        await slack.slash("C1", "U1", "/claudius", "whoami")
        await slack.until_called("chat.postMessage", 1)

    shown = [(entry.kind, entry.to) for entry in await slack.trace() if entry.kind in ("ephemeral", "response")]
    assert shown == [("ephemeral", "U1")]
    assert [one.channel[0] for one in await slack.visible() if not one.to] == ["D"]


def test_a_command_from_a_dm_is_answered_there() -> None:
    """No one else reads a DM."""
    body = {"command": "/claudius", "text": "whoami", "user_id": "U1", "channel_id": "D1", "team_id": "T1"}
    one, two = (commanded(body, US, Who("ana"), now) for now in (5.0, 6.0))

    assert one is not None
    assert two is not None
    assert one.key != two.key
    assert isinstance(one.extra, CommandExtra)
    assert one.extra.is_public is False
