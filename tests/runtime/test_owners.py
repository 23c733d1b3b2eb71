"""Owners and moderators, known by their signed id or a role: how one becomes one, what each commands, what is noted."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from both import SIDES, Side, done
from claudius.cli.chat import HELP
from claudius.cognition.mind import Stage
from claudius.config.load import load, write_setting
from claudius.home import Home
from claudius.memory.codes import OpenCode
from claudius.perception import Kind, Perception, private
from claudius.providers.scripted import Scripted
from claudius.runtime.access import KIND, OwnerCode
from claudius.runtime.commands.words import TABLE, UNKNOWN, as_command, help_text, read_command
from claudius.testing.adapter_contract.stage import ANA, BEN, CHANNEL, DM
from claudius.testing.alive import OWNER, Alive, alive
from ear import echo
from lab.loopback.discord import state as discord
from lab.stages.discord import DiscordStage

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def acts(soul: Alive) -> list[tuple[str, ...]]:
    """Return the acts of the audit log, but for what was found in files."""
    rows = soul.records().audit("", -1)
    return [(row["act"], row["who"], row["target"], row["from"]) for row in rows if row["from"] != "files"]


def owners(home: Home) -> tuple[str, ...]:
    """Return who owns the home, as the file says."""
    return load(home, {}).config.owners


@pytest.mark.parametrize("network", sorted(SIDES))
async def test_whoever_says_the_code_directly_is_an_owner(network: str, home: Home) -> None:
    """Once, and only they; the same code is worth nothing afterwards. Both the act and the setting are recorded."""
    home.create()
    code = OwnerCode(home).make(datetime.now(UTC))
    async with SIDES[network]() as side, side.wake(home, Scripted(default=echo)) as soul:
        await side.stage.say(DM, f"!owner {code.lower()}")
        await done(side, soul)
        first, own = owners(home), side.stage.own_person
        await side.stage.say(DM, f"!owner {code}")
        await done(side, soul)
        found = acts(soul)

    where = f"{network}:{own.split(':')[1]}"
    assert first == (own,)
    assert owners(home) == (own,)
    assert found == [("owner", own, own, where), ("setting", own, "owners", where)]


@pytest.mark.parametrize("network", sorted(SIDES))
async def test_a_code_that_others_could_read_is_void(network: str, home: Home) -> None:
    """Said in a channel it makes no one an owner, and nor does it afterwards; no model sees it."""
    home.create()
    voice = Scripted(default=echo)
    code = OwnerCode(home).make(datetime.now(UTC))
    async with SIDES[network]() as side, side.wake(home, voice) as soul:
        await side.stage.say(CHANNEL, f"!owner {code}", by=BEN, calls=True)
        await done(side, soul)
        await side.stage.say(DM, f"!owner {code}")
        await done(side, soul)
        found = acts(soul)

    assert (owners(home), found, voice.requests) == ((), [], [])


def test_a_code_cannot_be_guessed(home: Home) -> None:
    """One hour, five wrong tries, one use; a new code voids the one before. The file holds no code."""
    home.create()
    codes = OwnerCode(home)
    good = codes.make(NOW)
    kept = (home.state / "owner_code.json").read_text()
    assert good not in kept
    assert (home.state / "owner_code.json").stat().st_mode & 0o777 == 0o600

    assert [codes.redeem(good, NOW + timedelta(hours=1)), codes.redeem(good, NOW)] == [False, False]
    good = codes.make(NOW)
    assert [codes.redeem("AAAAAAAA", NOW) for _ in range(5)] == [False] * 5
    assert codes.redeem(good, NOW) is False
    older, newer = codes.make(NOW), codes.make(NOW)
    assert [codes.redeem(older, NOW), codes.redeem(newer, NOW), codes.redeem(newer, NOW)] == [False, True, False]


@pytest.mark.parametrize("network", sorted(SIDES))
async def test_owners_commands_are_refused_to_everybody_else(network: str, home: Home) -> None:
    """By the words, from another id: nothing is told, nothing is changed, nothing is recorded."""
    async with SIDES[network]() as side, side.wake(home, Scripted(default=echo), CLAUDIUS_OWNERS="slack:T1:U9") as soul:
        for number, word in enumerate(("status", "usage", "pause", "resume"), 1):
            await side.stage.command(DM, word)
            async with asyncio.timeout(20):
                while len(await side.stage.told()) < number:
                    await asyncio.sleep(0.01)
        answers, found = await side.stage.told(), acts(soul)

    assert all("Only an owner" in one for one in answers)
    assert found == []
    assert not load(home, {}).config.runtime.paused


@pytest.mark.parametrize("place", ["terminal:local:main:main", "slack:T1:D1:"])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *[(text, Kind.COMMAND) for text in ("/sttus", "!whomai", "!plan", "!helpp", "!mute bob", "/unmute @Bob")],
        *[(text, Kind.MESSAGE) for text in ("!Stop", "!export the report as pdf", "!mute button is broken", "!!")],
        *[(text, Kind.MESSAGE) for text in ("!please", "!like", "!hope", "!come", "!cute", "!blink", "!keen")],
    ],
)
def test_a_mistyped_command_is_no_talk(text: str, kind: Kind, place: str) -> None:
    """Else it is answered as if it had been carried out; `!stop` ends a turn, and is never taken for one."""
    heard = Perception(
        key="k", conversation=place, audience=private(ANA), person=ANA, name="", text=text, at=NOW, position="1"
    )

    found = as_command(heard)

    assert found.kind is kind
    assert kind is Kind.MESSAGE or read_command(found.text).word == UNKNOWN


@pytest.mark.parametrize("word", ["status", "help", "home"])
def test_common_words_are_no_command_in_a_channel(word: str) -> None:
    """Other bots are given them there, too: `!status` is a command where only the soul is spoken to, or by its name."""
    person = "slack:T1:U1"
    directly = Perception(
        key="k", conversation="slack:T1:D1:", audience=private(person), person=person, name="", text=f"!{word}", at=NOW,
        position="1",
    )  # fmt: skip
    in_channel = replace(directly, conversation="slack:T1:C1:", audience="shared:slack:T1:C1")

    assert as_command(in_channel).kind is Kind.MESSAGE
    assert as_command(replace(in_channel, text=f"!claudius {word}")).kind is Kind.COMMAND
    assert as_command(directly).kind is Kind.COMMAND


async def test_a_paused_soul_keeps_what_it_hears_and_thinks_nothing(home: Home) -> None:
    """While `runtime.paused` is set no one is answered and nothing of its own is thought; afterwards all are answered."""
    voice = Scripted(default=echo)
    home.create()
    write_setting(home, "runtime.paused", value=True)
    async with alive(home, voice) as soul:
        for n in range(3):
            await soul.network.hear(f"hello {n}", person="ana")
        async with asyncio.timeout(20):
            while soul.records().counts(NOW)["inbox"]["pending"] < 3:
                await asyncio.sleep(0.01)
        paused = (list(voice.requests), soul.mind.stage())
        write_setting(home, "runtime.paused", value=False)
        async with asyncio.timeout(20):
            while soul.mind.config().runtime.paused:
                await asyncio.sleep(0.01)
        soul.server._lanes.look_again()
        await soul.idle()
        said_now = [one.text for one in soul.network.visible]

    assert paused == ([], Stage.REFUSING)
    assert said_now == ["re hello 0", "re hello 1", "re hello 2"]


async def test_what_is_approved_is_recorded(home: Home) -> None:
    """`claudius pairing approve` and `revoke`, which only the running process can do, are this machine's user's acts."""
    async with alive(home, Scripted(default=echo)) as soul:
        pairing = soul.server._pairing
        asked = await soul.mind.store.codes.open(
            OpenCode(kind=KIND, person="discord:@me:7", name="Eve", network="discord", asked_at=soul.mind.clock()), 1
        )
        assert asked

        class Line:
            """A connection of the control socket."""

            async def send(self, document: Any) -> None:
                """Take an answer."""
                assert json.dumps(document)

        await pairing._approve(Line(), {"code": asked.code})  # type: ignore[arg-type] # all that it needs of one
        await pairing._revoke(Line(), {"person": "discord:@me:7"})  # type: ignore[arg-type] # all that it needs of one
        await pairing._revoke(Line(), {"person": "discord:@me:8"})  # type: ignore[arg-type] # all that it needs of one
        found = acts(soul)

    assert found == [("approve", OWNER, "discord:@me:7", "cli"), ("revoke", OWNER, "discord:@me:7", "cli")]


def test_its_name_is_left_out_once() -> None:
    """However often a message says it, a line of it is read in one step, and is no command."""
    assert read_command("Claudius plans").word == "plans"
    assert read_command("claudius " * 2000 + "plans").word == UNKNOWN


OWNER_OF = {"slack": "slack:T1:U9", "discord": "discord:@me:400000000000000009"}


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
        (ana, ben), own = people(side), side.stage.own_person
        if by_role:
            assert isinstance(side.stage, DiscordStage)
            role = await side.stage.world.add_role(discord.GUILD, "crew", users=(discord.ANA,))
            own = f"discord:{discord.GUILD}:role:{role}"
        given = {"CLAUDIUS_ACCESS_MODERATORS": own, "CLAUDIUS_OWNERS": OWNER_OF[network]}
        async with side.wake(home, voice, **given) as soul:
            refused = await said(side, soul, BEN, f"!mute {ana}")
            unlinked = await said(side, soul, ANA, "!mute @ben for 2h")
            muted = await said(side, soul, ANA, f"!mute {ben} for 2h")
            nothing, whoami = await said(side, soul, BEN, "are you there?"), await said(side, soul, BEN, "!whoami")
            own_silence = await said(side, soul, BEN, f"!unmute {ben}")
            spent, unmuted = len(voice.requests), await said(side, soul, ANA, f"!unmute {ben}")
            answered = await said(side, soul, BEN, "and now?")
            found = [(row["act"], row["who"]) for row in soul.records().audit("", -1) if "mute" in row["act"]]

    assert "Only an owner or a moderator" in refused[0]
    assert "the name that is offered after the @" in unlinked[0]
    assert muted[0].startswith("I answer nothing of theirs until ")
    assert (nothing, spent, unmuted) == ([], 0, ["I answer them again."])
    assert "You are " in whoami[0]
    assert "Only an owner or a moderator" in own_silence[0]
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
