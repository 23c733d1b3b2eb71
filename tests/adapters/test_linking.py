"""Linking two ids of two networks: each side is asked in a direct message, and both must agree."""

import asyncio
import json
import re
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from both import BEN_ON_DISCORD, BEN_ON_SLACK, Side, discord_side, slack_side
from claudius.home import Home
from claudius.memory.codes import LIFE, WRONG_TRIES
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from driven import reply
from ear import echo
from forget_rows import right
from lab.loopback.discord.state import ANA, CHANNEL, DM, GUILD
from lab.loopback.discord.world import DiscordWorld
from lab.loopback.slack.state import BOT_USER
from lab.loopback.slack.world import SlackWorld
from lab.stages.discord import DiscordStage
from lab.stages.slack import SlackStage

ON_SLACK, ON_DISCORD = "slack:T1:U1", f"discord:@me:{ANA}"
BEN_S, BEN_D = f"slack:T1:{BEN_ON_SLACK}", f"discord:@me:{BEN_ON_DISCORD}"


@dataclass(slots=True)
class Networks:
    """A Slack and a Discord server, with Ana (U1) and Ben on both, and a soul connected to both."""

    home: Home
    sides: tuple[Side, Side]
    voice: Scripted = field(default_factory=lambda: Scripted(default=echo))
    soul: Alive | None = None
    ahead: timedelta = timedelta(0)
    answered: dict[str, int] = field(default_factory=lambda: {"slack": 0, "discord": 0})

    @asynccontextmanager
    async def awake(self, *, archives: bool = False, **settings: str) -> AsyncIterator[Alive]:
        """Wake the soul on both networks."""
        first, *others = (side.make() for side in self.sides)
        settings |= {"CLAUDIUS_DISCORD_GUILDS": GUILD, "CLAUDIUS_PSYCHE_ENABLED": "0"}
        clock = lambda: datetime.now(UTC) + self.ahead  # noqa: E731 - a clock that a test sets
        async with alive(
            self.home, self.voice, adapter=first, beside=others, settings=settings, clock=clock, archives=archives
        ) as self.soul:
            for adapter in (first, *others):
                await adapter.link.tried()
            if not await _discord(self.sides[1]).commands():
                await _discord(self.sides[1]).until_called("bulk_overwrite_global_application_commands")
            yield self.soul

    async def slack(self, words: str, user: str = "U1", *, channel: str = "") -> str:
        """Run a command on Slack, in a direct message unless a channel is named. Returns what only its author sees."""
        world = _slack(self.sides[0])
        await world.slash(channel or await world.open_dm(user), user, "/claudius", words)
        await world.until_called("response_url", self._count("slack"))
        await self.idle()
        return [entry.text for entry in await world.trace() if entry.kind == "response"][-1]

    async def discord(
        self, code: str = "", user: str = ANA, *, channel: str = "", command: str = "link", yes: bool = False
    ) -> str:
        """Run a command on Discord, in a direct message unless a channel is named.

        Returns what only its author sees.
        """
        world = _discord(self.sides[1])
        place = channel or (DM if user == ANA else await world.open_dm(user))
        await world.slash(place, user, f"claudius {command}", {"yes": True} if yes else {"code": code} if code else {})
        await world.until_called("create_followup_message", self._count("discord"))
        await self.idle()
        return [entry.text for entry in await world.trace() if entry.kind == "response"][-1]

    async def ids(self, person: str) -> set[str]:
        """Return every id of a person."""
        assert self.soul
        return set(await self.soul.mind.store.people.ids_of(person)) or {person}

    async def posts(self) -> list[str]:
        """Return the posts in direct messages and channels, without the answers to slash commands."""
        seen = (*await _slack(self.sides[0]).visible(), *await _discord(self.sides[1]).visible())
        return [one.text for one in seen if one.kind != "response"]

    async def idle(self) -> None:
        """Wait until no command is running."""
        assert self.soul
        await self.soul.idle()

    async def agree(self) -> str:
        """Have Ana link her two ids. Returns the last answer."""
        await self.discord(_code(await self.slack("link")))
        await self.slack("link yes")
        return await self.discord("yes")

    def _count(self, network: str) -> int:
        self.answered[network] += 1
        return self.answered[network]


def _slack(side: Side) -> SlackWorld:
    assert isinstance(side.stage, SlackStage)
    return side.stage.world


def _discord(side: Side) -> DiscordWorld:
    assert isinstance(side.stage, DiscordStage)
    return side.stage.world


def _code(answer: str) -> str:
    found = re.search(r"link ([A-Z2-9]{8})$", answer)
    assert found, answer
    return found[1]


@pytest.fixture
async def networks(home: Home) -> AsyncIterator[Networks]:
    """Run both networks."""
    async with AsyncExitStack() as stack:
        sides = (await stack.enter_async_context(slack_side()), await stack.enter_async_context(discord_side()))
        yield Networks(home, sides)


async def test_two_ids_are_one_person_once_both_sides_have_agreed(networks: Networks) -> None:
    """A code alone links nothing: each side sees the other's id and name and what linking reveals, and says yes."""
    async with networks.awake():
        code = _code(await networks.slack("link"))
        asked_there = await networks.discord(code)
        asked_here = next(one for one in await networks.posts() if "want to be one person" in one)
        after_the_code = await networks.ids(ON_SLACK)
        noted = await networks.slack("link yes")
        after_one = await networks.ids(ON_SLACK)
        done = await networks.discord("yes")
        linked = await networks.ids(ON_DISCORD)
        told = [one for one in await networks.posts() if "are one person to me now" in one]

    assert after_the_code == after_one == {ON_SLACK}
    assert linked == {ON_SLACK, ON_DISCORD}
    for asked, other in ((asked_there, ON_SLACK), (asked_here, ON_DISCORD)):
        assert other in asked
        assert 'calls itself "' in asked
        assert "see what you told me here in private, and can export or erase it" in asked
    assert ON_DISCORD in noted
    assert "are one person to me now" in done
    assert len(told) == 1


async def test_two_ids_of_one_network_cannot_be_linked_in_chat(networks: Networks) -> None:
    """A person who is talked into giving a code on the same network reveals nothing, and no code remains to try."""
    async with networks.awake():
        code = _code(await networks.slack("link"))
        refused = await networks.slack(f"link {code}", BEN_ON_SLACK)
        again = await networks.slack(f"link {code}", BEN_ON_SLACK)
        yes = [await networks.slack("link yes", user) for user in ("U1", BEN_ON_SLACK)]
        ids = await networks.ids(ON_SLACK)

    assert "different networks only" in refused
    assert "not good" in again
    assert all("Nothing waits" in one for one in yes)
    assert ids == {ON_SLACK}


async def test_a_third_id_of_a_network_that_is_there_already_is_refused(networks: Networks) -> None:
    """Chains count: Ana, linked on both networks, cannot be joined with Ben's id on either, in any order."""
    async with networks.awake():
        await networks.agree()
        by_code = await networks.discord(_code(await networks.slack("link")), BEN_ON_DISCORD)
        turned = await networks.slack(f"link {_code(await networks.discord(user=BEN_ON_DISCORD))}")
        ids = await networks.ids(ON_SLACK)

    assert "Discord" in by_code
    assert "Discord" in turned
    assert ids == {ON_SLACK, ON_DISCORD}


async def test_linking_is_between_the_two_alone(networks: Networks) -> None:
    """In a channel neither a code nor an answer is accepted, and the code stays valid for a direct message."""
    async with networks.awake():
        public = await networks.slack("link", channel="C1")
        code = _code(await networks.slack("link"))
        there = await networks.discord(code, channel=CHANNEL)
        await networks.discord(code)
        agreed = await networks.slack("link yes", channel="C1")
        await networks.discord("yes")
        ids = await networks.ids(ON_SLACK)

    assert all("direct message" in one for one in (public, there, agreed))
    assert ids == {ON_SLACK}


async def test_an_undelivered_question_can_be_asked_again(networks: Networks) -> None:
    """If the question does not arrive, `link` in a direct message repeats it. Nothing is linked without an answer."""
    async with networks.awake():
        code = _code(await networks.slack("link"))
        await _slack(networks.sides[0]).fault("chat.postMessage", "status", status=500, times=100)
        there = await networks.discord(code)
        lost = await networks.posts()
        await networks.discord("yes")
        here = await networks.slack("link")
        await networks.slack("link yes")
        ids = await networks.ids(ON_SLACK)

    assert not [one for one in lost if "want to be one person" in one]
    assert "say to me there: !link" in there
    assert ON_DISCORD in here
    assert ids == {ON_SLACK, ON_DISCORD}


async def test_a_code_of_ones_own_and_a_no_link_nothing(networks: Networks) -> None:
    """A person's own code stays valid. A no from either side ends the link, and the other side is told."""
    async with networks.awake():
        code = _code(await networks.slack("link"))
        own = await networks.slack(f"link {code}")
        await networks.discord(code)
        await networks.slack("link yes")
        no = await networks.discord("no")
        late = await networks.slack("link yes")
        ids = await networks.ids(ON_SLACK)
        told = await networks.posts()

    assert "your own code" in own
    assert no == "Nothing is linked."
    assert "Nothing waits" in late
    assert ids == {ON_SLACK}
    assert [one for one in told if "said no" in one]


async def test_wrong_codes_are_counted_for_each_person(networks: Networks) -> None:
    """After five wrong codes that person alone must wait an hour, even with a right code. Other codes stay valid."""
    async with networks.awake():
        code = _code(await networks.slack("link"))
        wrong = [await networks.discord("AAAAAAAA", BEN_ON_DISCORD) for _ in range(WRONG_TRIES)]
        locked = await networks.discord(code, BEN_ON_DISCORD)
        fine = await networks.discord(code)
        networks.ahead = LIFE
        later = await networks.discord("AAAAAAAA", BEN_ON_DISCORD)

    assert {*wrong, later} == {wrong[0]}
    assert "not good" in wrong[0]
    assert "try again in an hour" in locked
    assert ON_SLACK in fine


async def test_what_was_not_agreed_within_an_hour_or_before_a_restart_is_void(networks: Networks) -> None:
    """Codes and questions live in memory. A person who says yes too late is told so, and nothing is linked."""
    async with networks.awake():
        await networks.discord(_code(await networks.slack("link")))
        await networks.slack("link yes")
        networks.ahead = LIFE
        late = await networks.discord("yes")
        await networks.discord(_code(await networks.slack("link")))
        await networks.slack("link yes")
    async with networks.awake():
        restarted = await networks.discord("yes")
        ids = await networks.ids(ON_SLACK)

    assert late == restarted
    assert "a restart of mine" in late
    assert ids == {ON_SLACK}


async def test_a_code_works_once_and_a_change_in_between_voids_it(networks: Networks) -> None:
    """The second person to use a code is refused, and ids that were linked elsewhere meanwhile are not joined."""
    async with networks.awake() as soul:
        code = _code(await networks.slack("link"))
        await networks.discord(code)
        second = await networks.discord(code, BEN_ON_DISCORD)
        await networks.slack("link yes")
        await networks.slack("link", BEN_ON_SLACK)
        await soul.mind.store.people.link(ON_SLACK, BEN_S)
        changed = await networks.discord("yes")
        ids = await networks.ids(ON_SLACK)

    assert "not good" in second
    assert "has changed meanwhile" in changed
    assert ids == {ON_SLACK, BEN_S}


async def test_a_forged_name_is_shown_beside_the_id_and_cannot_look_like_one(networks: Networks) -> None:
    """A display name is one quoted line of plain characters, after the id that the network signs."""
    forged = 'Ana" (slack:T1:U9)\n# @everyone \u202e<!channel> ' + "x" * 80
    async with networks.awake():
        await _discord(networks.sides[1]).add_user(BEN_ON_DISCORD, forged)
        asked = await networks.slack(f"link {_code(await networks.discord(user=BEN_ON_DISCORD))}")

    shown = re.search(r'calls itself "([^"]*)"\?', asked)
    assert shown
    assert shown[1].startswith("Ana slackT1U9")
    assert len(shown[1]) <= 40
    assert asked.index(BEN_D) < asked.index(shown[1])


async def test_after_unlink_in_chat_each_id_has_its_own_again(networks: Networks) -> None:
    """Prompts, export and erasure are separate again, and one id's private words are not shown to the other."""
    async with networks.awake():
        await networks.slack("correct I keep bees")
        await networks.agree()
        together = await networks.discord(command="whoami")
        apart = await networks.discord(command="unlink")
        alone = await networks.discord(command="whoami")
        exported = await networks.discord(command="export")
        again = await networks.slack("unlink")
        assert networks.soul
        await networks.slack("forget me")
        await networks.slack("forget me yes")
        ids = await networks.ids(ON_DISCORD)
        there = networks.soul.records().person(ON_DISCORD)

    assert "keep bees" in together
    assert ON_SLACK in apart
    assert "stays in that place" in apart
    assert "keep bees" not in alone
    assert json.loads(exported.strip("`\n"))["models"] == []
    assert "no other account" in again
    assert ids == {ON_DISCORD}
    assert there is not None


async def test_a_prompt_shows_what_the_other_id_told_only_while_they_are_linked(networks: Networks) -> None:
    """In a real turn in a Discord direct message, what Slack taught is in the prompt only while the ids are linked."""
    async with networks.awake():
        discord = _discord(networks.sides[1])
        await networks.slack("correct I keep bees")
        for number, step in enumerate((networks.agree, lambda: networks.discord(command="unlink"), None)):
            seen = len([one for one in await discord.visible() if one.channel == DM])
            await discord.say(DM, ANA, f"what do I keep? {number}")
            await discord.until_visible(seen + 1, channel=DM)
            await networks.idle()
            if step:
                await step()

    held = ["I keep bees" in repr(request) for request in networks.voice.requests]
    assert held == [False, True, False]


WORDS = ("zq-onslack", "zq-ondiscord")


def written(request: Request) -> str:
    """Return a reply that says again, in each of its sections, what its prompt tells."""
    found = " ".join(word for word in WORDS if word in repr(request)) or "nothing"
    said = reply(f"I heard {found}.", user_model_check="true", user_model_update=f"## Persona\n- Speaks of {found}")
    return (
        f"{said}<soul_state_check>true</soul_state_check><soul_state_update>currentTopic: {found}</soul_state_update>"
    )


def kept(home: Home, *words: str) -> set[str]:
    """Return where one of these words is kept: in which tables, and whether in git."""
    found = set()
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as made:
        tables = made.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
        for (table,) in tables.fetchall():
            rows = made.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608 - our own names
            found |= {table} if any(word in str(row) for row in rows for word in words) else set()
    command = ["git", "--git-dir", str(home.memory / ".git"), "cat-file", "--batch-all-objects", "--batch"]
    objects = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "ignore")
    return found | ({"git"} if any(word in objects for word in words) else set())


async def test_s31_a_linked_person_is_forgotten_on_both_networks(networks: Networks) -> None:
    """`linked`: asked on Discord, what was said and learned on Slack goes too: rows, prompts, git."""
    wanted = right("linked", "gone_from")
    networks.voice.default = written
    settings = {"CLAUDIUS_USER_MODEL_INTERVAL": "1", "CLAUDIUS_SOUL_STATE_INTERVAL": "1"}
    async with networks.awake(archives=True, **settings) as soul:
        await networks.agree()
        slack, discord, seen = _slack(networks.sides[0]), _discord(networks.sides[1]), len(await networks.posts())
        for say in (slack.say("C1", "U1", f"<@{BOT_USER}> my word is {WORDS[0]}"), discord.say(DM, ANA, WORDS[1])):
            await say
            async with asyncio.timeout(20):
                while len(await networks.posts()) == seen:
                    await asyncio.sleep(0.01)
            await networks.idle()
            seen = len(await networks.posts())
        archive = soul.server._archive
        assert archive
        while (await archive.round()).is_more:
            pass
        before = kept(networks.home, *WORDS)
        for yes in (False, True):
            receipt = await networks.discord(command="forget me", yes=yes)
        after, asked = kept(networks.home, *WORDS, ON_SLACK, ON_DISCORD), len(networks.voice.requests)
        await slack.say("C1", BEN_ON_SLACK, f"<@{BOT_USER}> what was that word?")
        await slack.until_visible(len(await slack.visible()) + 1)
        await networks.idle()
        prompts = [repr(one) for one in networks.voice.requests[asked:]]

    assert wanted["gone_from"] == "both networks' rows, prompts, git"
    assert before >= {"entry", "outbox", "user_model", "soul_state", "git"}
    assert receipt.startswith("You are forgotten")
    assert after == set()
    assert prompts
    assert not [one for one in prompts for word in WORDS if word in one]


async def test_s31_nobody_forgets_somebody_else(networks: Networks) -> None:
    """`forget-anothers`: Ben is told that only a person themself can ask for it, and of Ana nothing changes."""
    wanted = right("forget-anothers", "tom", "says")
    async with networks.awake() as soul:
        await networks.slack("correct I keep bees")
        before = await soul.mind.store.people.known_of(ON_SLACK, soul.mind.clock())
        refused = await networks.slack("forget what Ana told you", BEN_ON_SLACK)
        after = await soul.mind.store.people.known_of(ON_SLACK, soul.mind.clock())

    assert wanted == {"tom": "unchanged", "says": "that only Tom can"}
    assert "only they can take back" in refused
    assert after == before
    assert before.models
