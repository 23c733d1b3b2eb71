"""Who a person is to the soul: `whoami` and the Home tab show all that is kept of them, by names, and nothing of others."""

import json
import re

import pytest

from case_rows import Row, rows
from claudius.cognition.steps import STEPS
from claudius.home import shipped
from claudius.providers.rehearsal import Lines, reply
from claudius.providers.scripted import Scripted
from claudius.soul import SoulSource
from lab.loopback.slack.world import SlackWorld
from slack_side import Wake

COUNTED = {"the number of moments": r"\b\d+ messages? (?:is|are) kept"}
"""What a row asks for in words, as a pattern."""
_SOUL = SoulSource(shipped("soul"), shipped("soul"), STEPS).current()
LINES = Lines(_SOUL.files["rehearsal.md"])
VOICE = Scripted(default=lambda request: reply(request, LINES))
"""It books what it is told, as the voice without a model does."""


async def shown(slack: SlackWorld, wake: Wake, says: list[str], **settings: str) -> str:
    """Have Ana say lines, a command or the opening of the Home tab last; return what she is shown then."""
    await slack.add_user("U2", "ben")
    await slack.join("C1", "U2")
    direct, (*lines, last) = await slack.open_dm("U1"), says
    async with wake(voice=VOICE, **settings) as soul:
        for n in range(3):
            await slack.say("C1", "U2", "<@U0BOT> You are useless and stupid, I hate you.")
            await soul.until_said(n + 1, slack)
        for n, line in enumerate(lines, 4):
            await slack.say(direct, "U1", line)
            await soul.until_said(n, slack)
        if last.startswith("/claudius "):
            await slack.slash(direct, "U1", "/claudius", last.removeprefix("/claudius "))
            await slack.until_called("response_url", 1)
            await soul.idle()
            return next(one.text for one in await slack.trace() if one.kind == "response")
        await slack.open_home("U1")
        await slack.until_called("views.publish", 1)
        await soul.idle()
        return json.dumps(await slack.home("U1"), ensure_ascii=False)


@pytest.mark.parametrize("row", [*rows("newcomer", "any", only="whoami"), *rows("newcomer", "any", only="home-tab")])
async def test_what_is_kept_of_a_person_is_shown_to_them(row: Row, slack: SlackWorld, wake: Wake) -> None:
    """Name, facts and the count of what is kept; no id, no denial, and no mood that another made."""
    row.knows_only("must", "must_not", "never")
    told = await shown(slack, wake, row.input["says"])
    told = told.partition('"id"')[0]  # the view's own

    assert [one for one in row.right["must"] if not re.search(COUNTED.get(one, re.escape(one)), told)] == []
    assert [one for one in row.right["never"] if re.search(one, told)] == []
    assert row.right.get("must_not", ["tell a mood that another made"]) == ["tell a mood that another made"]
    assert "I am frustrated" not in told


@pytest.mark.parametrize("way", ["/claudius whoami", "(opens the Home tab)"])
async def test_what_waits_for_a_person_is_shown_with_its_hour(slack: SlackWorld, wake: Wake, way: str) -> None:
    """A reminder stands in the document with its hour; the channel's name stands for its id."""
    told = await shown(slack, wake, ["Remind me in 3 hours to water the fern.", way], CLAUDIUS_CLOCK_TIMEZONE="UTC")

    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d: water the fern", told)


async def test_a_channel_is_named_and_not_numbered(slack: SlackWorld, wake: Wake) -> None:
    """What was learned in a channel says where, as a link that Slack shows by the channel's name."""
    async with wake(voice=VOICE) as soul:
        await slack.say("C1", "U1", "<@U0BOT> hello")
        await soul.until_said(1, slack)
        here, now = "shared:slack:T1:C1", soul.mind.clock()
        await soul.mind.store.documents.set_model("slack:T1:U1", here, "Builds bridges.", "met", "owner", now)
        await slack.slash("C1", "U1", "/claudius", "whoami")
        await slack.until_called("response_url", 1)
        await soul.idle()
        told = next(one.text for one in await slack.trace() if one.kind == "response")

    assert "Written in <#C1>, version 1:" in told
