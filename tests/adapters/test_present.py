"""What a prompt says of its place, and thoughts that owners alone see folded, on Slack and Discord (doors §7)."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from both import SIDES, Side
from claudius.cognition.turn import Turned
from claudius.home import Home
from claudius.ledger_types import Belief
from claudius.perception import Kind, Origin
from claudius.prompt import ago
from claudius.providers.scripted import Scripted
from claudius.runtime.delivery import is_still_chosen, thought_to_show
from claudius.testing.adapter_contract.stage import ANA, BEN, CHANNEL, DM
from claudius.testing.alive import Alive
from lab.loopback.discord.state import ANA as ANA_ON_DISCORD
from lab.loopback.discord.state import GUILD
from lab.stages.slack import SlackStage
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


THOUGHT = "Tin || rope, or *wire*?"
SAID = "Take the rope."
VOICE = f"<internal_monologue>{THOUGHT}</internal_monologue><external_dialogue>{SAID}</external_dialogue>"
SHOWN = {"slack": f"💭 {THOUGHT}", "discord": r"-# ||💭 Tin \|\| rope, or \*wire\*?||"}


async def posts(side: Side) -> list[str]:
    """Return every post of the app, a context block as its text, and every answer to a command."""
    if not isinstance(side.stage, SlackStage):
        return [*[one.text for one in await side.stage.visible()], *await side.stage.told()]
    seen = await side.stage.world.visible()
    shown = [one.blocks[0]["elements"][0] if one.blocks and one.blocks[0]["type"] == "context" else {} for one in seen]
    assert [one["type"] for one in shown if one] == ["plain_text"] * len([one for one in shown if one])
    texts = [block["text"] if block else one.text for one, block in zip(seen, shown, strict=True)]
    return [*texts, *await side.stage.told()]


async def after(side: Side, soul: Alive, where: str, line: str, text: str, count: int, **by: Any) -> list[str]:
    """Say a line and wait until a text stands there so often and nothing goes on. Returns what `posts` does."""
    await side.stage.say(where, line, calls=where == CHANNEL, **by)
    async with asyncio.timeout(20):
        while len([one for one in await posts(side) if text in one]) < count:
            await asyncio.sleep(0.01)
    await soul.idle()
    return await posts(side)


@pytest.mark.parametrize("network", sorted(SIDES))
async def test_d7_an_owner_sees_thoughts_in_their_own_direct_message_and_nowhere_else(network: str, home: Home) -> None:
    """Off by default; on and off by a command, also the same thought again; refused in a channel; not for a turn that felt what others said."""
    turns: list[Turned] = []
    async with SIDES[network]() as side:
        own = side.stage.own_person
        async with side.wake(home, Scripted(default=VOICE), CLAUDIUS_OWNERS=own, CLAUDIUS_PSYCHE_ENABLED="0") as soul:
            assert soul.services
            vars(soul.services.stream)["committed"] = turns.append
            before = await after(side, soul, DM, "Which one?", SAID, 1)
            await after(side, soul, DM, "!thoughts on", "folded", 1)
            await after(side, soul, DM, "And now?", SAID, 2)
            on = await after(side, soul, DM, "And still?", SAID, 3)
            config = soul.mind.config()
            in_channel = await after(side, soul, CHANNEL, "What of it?", SAID, 4)
            refused = await after(side, soul, CHANNEL, "!thoughts on", "to an owner alone", 1)
            of_ben = await after(side, soul, CHANNEL, "!thoughts on", "Only an owner", 1, by=BEN)
            await after(side, soul, DM, "!thoughts off", "to myself", 1)
            off = await after(side, soul, DM, "And then?", SAID, 5)

    assert SHOWN[network] not in before
    for seen in (on, in_channel, refused, of_ben, off):
        assert [one for one in seen if "💭" in one] == [SHOWN[network]] * 2
    assert config.runtime.thoughts == (turns[1].intent.conversation,)
    _refuses_all_else(turns[1], config)


def _refuses_all_else(turned: Turned, config: Any) -> None:
    known, heard = turned.recollection, turned.recollection.perception
    belief = Belief(key="k", value="v", rationale="", source_cycle=1, created_at=known.now)
    directive = replace(heard, kind=Kind.DIRECTIVE, origin=Origin.INTERNAL)
    changed: dict[str, dict[str, Any]] = {
        "a belief": {"beliefs": (belief,)},
        "a second thought": {"second_thought": "They are many."},
        "a directive": {"perceptions": (directive,)},
        "another's audience": {"audience": "private:slack:T1:U9"},
    }
    assert thought_to_show(turned, config) is not None
    masked = thought_to_show(turned, config, (THOUGHT,))
    assert masked is not None
    assert masked.text == "***"
    assert thought_to_show(turned, replace(config, owners=())) is None, "unlinked: no owner any more"
    shown = thought_to_show(turned, config)
    assert shown
    later = {
        "off": replace(config, runtime=replace(config.runtime, thoughts=())),
        "unlinked": replace(config, owners=()),
    }
    assert [is_still_chosen(shown, one) for one in (config, *later.values())] == [True, False, False]
    assert thought_to_show(replace(turned, intent=replace(turned.intent, whispers=(1,))), config) is None
    for name, values in changed.items():
        assert thought_to_show(replace(turned, recollection=replace(known, **values)), config) is None, name
