"""S11: whatever the soul is talked into saying, it pings no one but the person it answers."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from both import Side
from claudius.cognition.output.gate import gate
from claudius.cognition.output.rules import Mentionable, OutputRules
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.adapter_contract.stage import CHANNEL, DM
from driven import reply
from lab.stages.discord import DiscordStage
from lab.stages.slack import SlackStage

ZONES = OutputRules(fallback="FIXED", mentions=Mentionable(answered="slack:T1:U1", members={"slack:T1:U2": "Ben"}))
SUMMONS = (
    "@everyone", "@here", "@channel", "<!everyone>", "<!here|here>", "<!channel>", "<!subteam^S1|@devs>", "<@U2>", "<@U9|x>",
    "<@&4711>", "<@!U9>", "@ever\u200byone", "@he\u00adre", "<<!channel>>", "<!chan\u202enel>",
)  # fmt: skip
LIVE = re.compile(r"@(?:everyone|here|channel)|<!(?:everyone|here|channel|subteam)|<@[!&]?(?!U1\b)\w", re.IGNORECASE)
ORDER = " ".join(SUMMONS) + " <@400000000000000002>"


@given(st.lists(st.one_of(st.sampled_from(SUMMONS), st.text(max_size=8)), max_size=8).map("".join))
def test_s11_no_mass_mention_passes_the_gate(text: str) -> None:
    """This covers group, role and user mentions in every form and disguise, among any other text."""
    assert not LIVE.search(gate(text, ZONES).text)


async def test_s11_no_call_pings_anybody(side: Side, home: Home) -> None:
    """On the wire, no name is linked and no mention is parsed, whatever the words. No one was notified."""
    async with side.wake(home, Scripted(default=reply(ORDER))) as soul:
        await side.stage.say(CHANNEL, "call them all", calls=True)
        await side.stage.say(DM, "call them all")
        shown = await soul.until_said(2, side.stage)

    assert not any(LIVE.search(one.text) for one in shown)
    if isinstance(side.stage, SlackStage):
        calls = [call.arguments for call in await side.stage.world.calls("chat.postMessage")]
        assert [str(call["link_names"]).lower() in ("false", "0") for call in calls] == [True, True]
        return
    assert isinstance(side.stage, DiscordStage)
    bodies = [json.loads(call.raw) for call in await side.stage.world.calls("create_message")]
    assert [body["allowed_mentions"]["parse"] for body in bodies] == [[], []]
    assert [one.pings for one in await side.stage.world.visible()] == [[], []]
