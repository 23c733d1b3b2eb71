"""The manifest asks for what the code uses, and it alone is enough for the soul to hear and speak."""

import json
import re

from click.testing import CliRunner

from claudius.adapters.slack.incoming import HANDLED
from claudius.adapters.slack.manifest import EVENTS, SCOPES, manifest
from claudius.cli.networks import slack as command
from lab.loopback.slack.rules import EVENT_SCOPE, HISTORY_SCOPE, METHODS, READ_SCOPE
from lab.loopback.slack.state import BOT_TOKEN
from lab.loopback.slack.world import SlackWorld
from slack_side import Wake, said
from tree import PACKAGE

KINDS = {"message.channels", "message.groups", "message.im", "message.mpim"}
BY_PLACE = {
    "conversations.history": HISTORY_SCOPE,
    "conversations.replies": HISTORY_SCOPE,
    "conversations.members": READ_SCOPE,
    "users.conversations": READ_SCOPE,
}
"""Methods whose scope depends on the kind of conversation."""


def called() -> set[str]:
    """Return every Web API method that the adapter's source names."""
    text = "\n".join(path.read_text("utf-8") for path in (PACKAGE / "adapters" / "slack").glob("*.py"))
    by_python_name = {re.sub(r"[._]", "_", method): method for method in METHODS}
    return {method for name, method in by_python_name.items() if re.search(rf'[."]{name}["(]', text)}


def test_every_call_has_its_scope() -> None:
    """Each method that the code calls is allowed by a scope of the manifest."""
    missing = {
        method
        for method in called() - {"apps.connections.open"}
        if METHODS[method].scopes and not set(METHODS[method].scopes) & set(SCOPES)
    }

    assert {"chat.postMessage", "conversations.history", "users.info", "reactions.add", "auth.test"} <= called()
    assert missing == set()
    for method in called() & set(BY_PLACE):
        assert set(BY_PLACE[method].values()) <= set(SCOPES)


def test_every_event_that_is_handled_is_subscribed_to_and_no_other() -> None:
    """Missing event subscriptions are the most common setup fault; each has the scope that it needs."""
    handled = {event for event in HANDLED if event != "message"} | KINDS

    assert set(EVENTS) == handled
    assert {EVENT_SCOPE.get(event) for event in EVENTS} - {None} <= set(SCOPES)


def test_slack_accepts_the_manifest() -> None:
    """It has Socket Mode, interactivity, a writable Messages Tab, and commands whose mentions are escaped."""
    printed = json.loads(CliRunner().invoke(command, ["manifest"]).output)

    assert printed == manifest()
    assert printed["settings"]["socket_mode_enabled"]
    assert printed["settings"]["interactivity"] == {"is_enabled": True}
    assert not printed["features"]["app_home"]["messages_tab_read_only_enabled"]
    assert [one["command"] for one in printed["features"]["slash_commands"]] == ["/claudius", "/ensoul"]
    assert all(one["should_escape"] for one in printed["features"]["slash_commands"])
    assert all(len(one["description"]) <= 2000 for one in printed["features"]["slash_commands"])
    assert printed["oauth_config"]["scopes"]["bot"] == list(SCOPES)


def test_the_manifest_can_carry_another_name() -> None:
    """The app and its user both carry the name. A name that Slack would refuse is refused here."""
    printed = json.loads(CliRunner().invoke(command, ["manifest", "--json", "--name", "Sexta"]).output)

    assert printed["display_information"]["name"] == printed["features"]["bot_user"]["display_name"] == "Sexta"
    assert CliRunner().invoke(command, ["manifest", "--name", "x" * 36]).exception is not None


async def test_with_the_manifest_and_nothing_more_it_hears_and_speaks(slack: SlackWorld, wake: Wake) -> None:
    """This holds in every kind of conversation: no call is refused for lack of a scope."""
    await slack.allow(BOT_TOKEN, list(SCOPES))
    await slack.set(events=list(EVENTS))
    await slack.add_channel("G1", "secret", kind="group", members=["U0BOT", "U1"])
    await slack.add_channel("G2", "three", kind="mpim", members=["U0BOT", "U1", "U2"])

    async with wake() as soul:
        for channel in ("C1", "G1", "G2", "D1"):
            await slack.say(channel, "U1", f"<@U0BOT> {channel}")
        await soul.until_said(4, slack)

    assert sorted(text for _, _, text in await said(slack)) == ["re C1", "re D1", "re G1", "re G2"]
    assert [call.method for call in await slack.calls() if call.error == "missing_scope"] == []
