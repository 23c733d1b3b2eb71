"""What a prompt says of its place: on Slack and Discord, through their real libraries."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from both import SIDES, Side
from claudius.home import Home
from claudius.prompt import ago
from claudius.providers.scripted import Scripted
from claudius.testing.adapter_contract.stage import ANA, BEN, CHANNEL, DM
from claudius.testing.alive import Alive
from lab.loopback.discord.state import ANA as ANA_ON_DISCORD
from lab.loopback.discord.state import GUILD
from minds import by_tag, until

FORMS = {
    "slack": "Slack: *bold*, no tables, 3,000 characters a post.",
    "discord": "Discord: **bold**, no tables, 2,000 characters a post.",
}


@dataclass(frozen=True, slots=True)
class Heard:
    """A soul on one network, and the model that it asks."""

    side: Side
    soul: Alive
    voice: Scripted

    async def says(self, where: str, by: str = ANA, thread: str = "") -> tuple[str, str]:
        """Have a person say a line; return its message, and what its prompt says of place, language and form."""
        asked = len(self.voice.requests)
        words = "What do you think of larch for the planks?"
        message = await self.side.stage.say(where, words, by=by, thread=thread, calls=where == CHANNEL)
        await until(lambda: len(self.voice.requests) > asked)
        await self.soul.idle()
        now = self.voice.requests[asked].tail.partition("## The Present\n")[2].partition("\n")[0]
        return message, now.partition("). ")[2].replace(f"The speaker last spoke here {ago(0)}. ", "")


@pytest.mark.parametrize("network", sorted(SIDES))
async def test_the_present_says_where_to_whom_in_which_language_and_form(home: Home, network: str) -> None:
    """A direct message names its partner; a channel its name and who reads along: single words, whatever a name holds.

    Slack tells a person's own locale; Discord its server's, until a command of theirs tells their own.
    """
    voice, called = Scripted(default=by_tag()), network.capitalize()
    async with SIDES[network]() as side:
        world = side.stage.world  # type: ignore[attr-defined] # of the lab
        if network == "slack":
            await world.add_user("U1", "ana", locale="de-DE")
        else:
            await world.add_user(ANA_ON_DISCORD, "ana", locale="de")
            await world.prefer(GUILD, "fr")
        async with side.wake(home, voice) as soul:
            heard = Heard(side, soul, voice)
            message, first = await heard.says(CHANNEL, BEN)
            _, channel = await heard.says(CHANNEL, thread=message)
            if network == "discord":
                await side.stage.command(CHANNEL, "whoami")
                async with asyncio.timeout(20):
                    while not await side.stage.told():
                        await asyncio.sleep(0.01)
            _, direct = await heard.says(DM)

    of_ben = "" if network == "slack" else "ben's Discord is set to French. "
    of_ana = f"ana's {called} is set to {'German' if network == 'slack' else 'French'}. "
    assert first == f"{called}, #general, in a thread. {of_ben}{FORMS[network]}"
    assert channel == f"{called}, #general, in a thread; ben reads along. {of_ana}{FORMS[network]}"
    assert direct == f"A direct message with ana. ana's {called} is set to German. {FORMS[network]}"
