"""Moderators: they mute and unmute people, by their signed id or a role; they rule neither owners nor themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from both import SIDES, Side
from claudius.cli.chat import HELP
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.runtime.commands.words import TABLE, help_text
from claudius.testing.adapter_contract.stage import ANA, BEN, CHANNEL
from claudius.testing.alive import Alive
from ear import echo
from lab.loopback.discord import state as discord
from lab.stages.discord import DiscordStage

OWNER = {"slack": "slack:T1:U9", "discord": "discord:@me:400000000000000009"}


async def said(side: Side, soul: Alive, by: str, text: str) -> list[str]:
    """Say something in the channel, and return what was told in answer, aloud or to that person alone."""
    before = len(await told(side))
    await side.stage.say(CHANNEL, text, by=by, calls=not text.startswith("!"))
    await side.stage.until_told()
    async with asyncio.timeout(20):
        while getattr(soul.server._lanes._adapters[side.stage.name], "_hearing", ()) or soul.server.busy:
            await asyncio.sleep(0.002)
    return (await told(side))[before:]


async def told(side: Side) -> list[str]:
    """Return all that the soul said, aloud or to one person alone."""
    shown = await side.stage.world.trace()  # type: ignore[attr-defined] # each has a world
    return [one.text for one in shown if one.by == "app" and one.text]


def people(side: Side) -> tuple[str, str]:
    """Return how messages mention Ana and Ben."""
    if isinstance(side.stage, DiscordStage):
        return f"<@{discord.ANA}>", "<@400000000000000002>"
    return "<@U1>", "<@U2>"


@pytest.mark.parametrize(("network", "by_role"), [("slack", False), ("discord", False), ("discord", True)])
async def test_a_moderator_mutes_and_unmutes(network: str, home: Home, *, by_role: bool) -> None:
    """Ana, who is named or has the role, silences Ben, whose commands are still answered; Ben may do neither."""
    voice = Scripted(default=echo)
    async with SIDES[network]() as side:
        ana, ben = people(side)
        own = side.stage.own_person
        if by_role:
            assert isinstance(side.stage, DiscordStage)
            role = await side.stage.world.add_role(discord.GUILD, "crew", users=(discord.ANA,))
            own = f"discord:{discord.GUILD}:role:{role}"
        given = {"CLAUDIUS_ACCESS_MODERATORS": own, "CLAUDIUS_OWNERS": OWNER[network]}
        async with side.wake(home, voice, **given) as soul:
            refused = await said(side, soul, BEN, f"!mute {ana}")
            muted = await said(side, soul, ANA, f"!mute {ben} for 2h")
            nothing = await said(side, soul, BEN, "are you there?")
            whoami = await said(side, soul, BEN, "!whoami")
            own_silence = await said(side, soul, BEN, f"!unmute {ben}")
            spent = len(voice.requests)
            unmuted = await said(side, soul, ANA, f"!unmute {ben}")
            answered = await said(side, soul, BEN, "and now?")
            found = [(row["act"], row["who"]) for row in soul.records().audit("", -1) if "mute" in row["act"]]

    assert "Only an owner or a moderator" in refused[0]
    assert muted[0].startswith("I answer nothing of theirs until ")
    assert (nothing, spent) == ([], 0)
    assert "You are " in whoami[0]
    assert "Only an owner or a moderator" in own_silence[0]
    assert unmuted == ["I answer them again."]
    assert answered[-1] == "re and now?"
    assert found == [("mute", side.stage.own_person), ("unmute", side.stage.own_person)]


@pytest.mark.parametrize("network", sorted(SIDES))
async def test_a_moderator_rules_no_owner_and_ends_no_silence_of_their_own(network: str, home: Home) -> None:
    """An owner silences both; neither the moderator's own silence nor an owner's is theirs to change."""
    async with SIDES[network]() as side:
        ana, ben = people(side)
        mine = side.stage.own_person
        theirs = mine.replace("U1", "U2").replace(discord.ANA, "400000000000000002")
        given = {"CLAUDIUS_ACCESS_MODERATORS": theirs, "CLAUDIUS_OWNERS": mine}
        async with side.wake(home, Scripted(default=echo), **given) as soul:
            heard = [
                *await said(side, soul, BEN, f"!mute {ana}"),
                *await said(side, soul, ANA, f"!mute {ben}"),
                *await said(side, soul, BEN, f"!unmute {ben}"),
                *await said(side, soul, BEN, "am I heard?"),
            ]
            unheard = await said(side, soul, ANA, f"!mute {theirs}9")
            await said(side, soul, ANA, f"!unmute {theirs}9")
            muted = soul.mind.config().access.muted

    assert [one.partition(",")[0].partition(" until")[0] for one in heard] == [
        "An owner is muted by owners alone",
        "I answer nothing of theirs",
        "An owner is muted by owners alone",
    ]
    assert f"But I never heard from {theirs}9" in unheard[0]
    assert muted == (theirs,)


def lines(network: str, **rights: bool) -> Sequence[str]:
    """Return the lines of the help."""
    return help_text(network, **{"is_owner": False, **rights}).splitlines()


@pytest.mark.parametrize("network", ["terminal", "slack", "discord"])
def test_help_names_what_one_may_say(network: str) -> None:
    """Eight lines at most; every command in one of them, and nobody is shown a command that they may not give."""
    everybody, moderators, owners = lines(network), lines(network, is_moderator=True), lines(network, is_owner=True)
    named, who = "\n".join(owners), "ID" if network == "terminal" else "@NAME"

    assert len(owners) <= 8 - (network == "terminal")
    assert [word for word, one in TABLE.items() if one.group and word not in named] == []
    assert [one for one in moderators if one not in everybody] == [f"Moderators: !mute {who} [for 2h], !unmute {who}"]
    assert "pause" not in "\n".join(everybody + moderators)
    assert network != "terminal" or max(map(len, [*owners, HELP])) <= 80
