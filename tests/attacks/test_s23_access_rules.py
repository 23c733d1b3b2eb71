"""S23: the owner's own rules about who may talk, by stable id. Whom one leaves out costs 0 rows and 0 model calls."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from both import SIDES
from claudius.config.load import load
from claudius.config.schema import Config, DiscordSettings
from claudius.config.tables import AccessSettings
from claudius.errors import BadConfiguration
from claudius.home import Home
from claudius.memory.search import tables
from claudius.perception import Kind, Perception, private
from claudius.providers.scripted import Scripted
from claudius.runtime.access import admit
from claudius.testing.adapter_contract.stage import ANA, BEN, CHANNEL, DM
from claudius.testing.alive import Alive
from ear import echo
from lab.loopback.discord.state import ANA as ANA_ON_DISCORD
from lab.loopback.discord.state import GUILD
from lab.stages.discord import DiscordStage

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROLE = "ROLE"
"""Stands for the id of the role that the test makes."""
RULES = [
    ("slack", {"ACCESS_SLACK_PEOPLE": "U2"}, True),
    ("slack", {"ACCESS_SLACK_PEOPLE": "[]"}, False),
    ("slack", {"ACCESS_SLACK_PEOPLE": "slack:T1:U2,U9"}, True),
    ("slack", {"ACCESS_SLACK_PEOPLE": "U1,U2", "ACCESS_SLACK_PEOPLE_DENIED": "U1"}, True),
    ("slack", {"ACCESS_SLACK_PEOPLE_DENIED": "slack:T1:U1"}, True),
    ("slack", {"ACCESS_SLACK_CHANNELS": "C9"}, False),
    ("slack", {"ACCESS_SLACK_CHANNELS": "[]"}, False),
    ("slack", {"ACCESS_SLACK_CHANNELS": "C1", "ACCESS_SLACK_CHANNELS_DENIED": "C1"}, False),
    ("discord", {"ACCESS_DISCORD_ROLES": ROLE}, True),
    ("discord", {"ACCESS_DISCORD_ROLES": "[]"}, False),
    ("discord", {"ACCESS_DISCORD_ROLES": GUILD, "ACCESS_DISCORD_ROLES_DENIED": "ROLE OF ANA"}, True),
]
"""A network, the rules set, and whether Ben still talks there. Ana never does."""


@pytest.mark.parametrize(("network", "rules", "ben_talks"), RULES)
async def test_s23_an_outsider_by_a_rule_costs_nothing(
    network: str,
    rules: dict[str, str],
    ben_talks: bool,  # noqa: FBT001 - a parameter
    home: Home,
) -> None:
    """S23: a mention, talk, an edit, a reaction and a command of hers: no row in any table, no call, no reply."""
    voice = Scripted(default=echo)
    async with SIDES[network]() as side:
        if isinstance(side.stage, DiscordStage):
            world = side.stage.world
            roles = {
                ROLE: await world.add_role(GUILD, "crew", users=("400000000000000002",)),
                "ROLE OF ANA": await world.add_role(GUILD, "muted", users=(ANA_ON_DISCORD,)),
            }
            rules = {name: roles.get(value, value) for name, value in rules.items()}
        async with side.wake(home, voice, **{f"CLAUDIUS_{name}": value for name, value in rules.items()}) as soul:
            before = rows(home)
            message = await side.stage.say(CHANNEL, "hello", calls=True)
            await side.stage.edit(CHANNEL, message, "hello again", calls=True)
            await side.stage.react(CHANNEL, message, "🛑")
            await side.stage.say(CHANNEL, "!whoami", calls=True)
            await side.stage.command(CHANNEL, "whoami")
            if "SLACK_CHANNELS" not in "".join(rules):
                await side.stage.say(DM, "are you there?")
            await side.stage.until_told()
            await heard(soul, network)

            assert rows(home) == before
            assert (voice.requests, await side.stage.visible()) == ([], [])

            await side.stage.say(CHANNEL, "and I?", by=BEN, calls=True)
            await side.stage.until_told()
            await heard(soul, network)

            assert len(voice.requests) == ben_talks


async def test_s23_a_rule_about_channels_leaves_direct_messages_alone(home: Home) -> None:
    """S23: `access.slack_channels` names channels; who may write directly is for `access.slack_people` to say."""
    voice = Scripted(default=echo)
    async with SIDES["slack"]() as side, side.wake(home, voice, CLAUDIUS_ACCESS_SLACK_CHANNELS="[]") as soul:
        await side.stage.say(DM, "are you there?", by=ANA)
        await soul.until_said(1, side.stage)

    assert len(voice.requests) == 1


async def test_s23_a_role_counts_in_a_direct_message_too(home: Home) -> None:
    """S23: whoever has a role in a shared server writes directly by it; no one else does."""
    voice = Scripted(default=echo)
    async with SIDES["discord"]() as side:
        assert isinstance(side.stage, DiscordStage)
        role = await side.stage.world.add_role(GUILD, "crew", users=(ANA_ON_DISCORD,))
        async with side.wake(home, voice, CLAUDIUS_ACCESS_DISCORD_ROLES=role) as soul:
            await side.stage.say(DM, "are you there?", by=ANA)
            await soul.until_said(1, side.stage)
            with closing(sqlite3.connect(home.database)) as connection:
                ((kept,),) = connection.execute("SELECT payload FROM inbox").fetchall()

    assert len(voice.requests) == 1
    assert "roles" not in kept


ids = st.lists(st.sampled_from(["U1", "U2", "slack:T1:U1", "*"]), max_size=2).map(tuple)


@given(st.none() | ids, ids, st.sampled_from(["U1", "U2"]))
def test_s23_a_denial_wins(allowed: tuple[str, ...] | None, denied: tuple[str, ...], user: str) -> None:
    """S23 P: one is heard who is on the list, or where there is none; never one who is denied, whatever else says so."""
    access = AccessSettings(slack_people=allowed, slack_people_denied=denied)
    person = f"slack:T1:{user}"
    said = Perception(
        key="k", conversation=f"slack:T1:D{user}:", audience=private(person), person=person, name="", text="hello",
        at=NOW, position="1", kind=Kind.MESSAGE,
    )  # fmt: skip

    heard = admit(said, Config(access=access, discord=DiscordSettings()))

    own = {user, person, "*"}
    assert (heard is not None) == (not own & set(denied) and (allowed is None or bool(own & set(allowed))))


def test_s23_a_list_that_is_not_set_is_not_an_empty_one(home: Home) -> None:
    """S23: `[]` in the file or the environment is no one; a list that is not there allows everyone, and reads null."""
    home.create()
    unset = load(home, {}).config.access.slack_people
    by_name = load(home, {"CLAUDIUS_ACCESS_SLACK_PEOPLE": "[]"}).config.access.slack_people
    home.config.write_text("[access]\nslack_people = []\n", "utf-8")

    assert (unset, by_name, load(home, {}).config.access.slack_people) == (None, (), ())

    home.config.write_text('[access]\nslack_people = "U1"\n', "utf-8")
    with pytest.raises(BadConfiguration, match=r"access\.slack_people"):
        load(home, {})


async def heard(soul: Alive, network: str) -> None:
    """Wait until the adapter has judged everything that came, and what it accepted is answered."""
    async with asyncio.timeout(20):
        while getattr(soul.server._lanes._adapters[network], "_hearing", ()) or soul.server.busy:
            await asyncio.sleep(0.002)


def rows(home: Home) -> dict[str, int]:
    """Return how many rows each table has, but for those of no one: how far a history was read, what was compared."""
    with closing(sqlite3.connect(home.database)) as connection:
        connection.row_factory = sqlite3.Row
        names = [name for name, *_ in tables(connection) if name not in ("heard", "audited")]
        return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}  # noqa: S608 - our own names
