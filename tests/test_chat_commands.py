"""The rows of `cases/commands.json`: what is a command and what is talk, what each must do, and the help."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from both import SIDES, Side, discord_side, done, slack_side
from case_rows import Row, rows
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.runtime import scheduler
from claudius.testing.adapter_contract.stage import CHANNEL, DM
from claudius.testing.alive import Alive, alive
from driven import Machine
from ear import echo
from lab.loopback.discord import state as discord
from lab.loopback.slack.state import BOT_USER
from lab.loopback.slack.world import SlackWorld
from lab.stages.slack import SlackStage
from minds import by_tag

OWNER = "slack:T1:U9"
PLACES = {"dm": DM, "channel": CHANNEL}


def of(kind: str, key: str) -> list[Any]:
    """Return the rows of one kind whose input has a key."""
    return [one for one in rows("commands", kind) if key in one.values[0].input]


def effects(network: str) -> list[Any]:
    """Return the rows of what commands must do in a network."""
    return [one for one in rows("commands", "effect") if one.values[0].input["network"] == network]


@asynccontextmanager
async def awake(side: Side, home: Home, voice: Scripted, **settings: Any) -> AsyncIterator[Alive]:
    """Wake a soul whose owner is a third person of that Slack."""
    if isinstance(side.stage, SlackStage):
        await side.stage.world.add_user("U9", "oz")
        await side.stage.world.join("C1", "U9", deliver=False)
    async with side.wake(home, voice, CLAUDIUS_OWNERS=OWNER, **settings) as soul:
        yield soul


def carried_out(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the words of the commands that were carried out, oldest first."""
    return [str(vars(one)["word"]) for one in caplog.records if one.message == "asked"]


@pytest.mark.parametrize("row", [*of("talk", "says"), *of("command", "says")])
async def test_a_command_is_the_whole_message(row: Row, home: Home, caplog: pytest.LogCaptureFixture) -> None:
    """Its word and no more than its own closed arguments is carried out; anything else is thought about."""
    row.knows_only("command", "thought_about", "calls")
    voice, says = Scripted(default=echo), str(row.input["says"])
    async with SIDES[row.input["network"]]() as side, awake(side, home, voice) as soul:
        caplog.set_level("INFO", "claudius.runtime.commands")
        calls = says.startswith("<@{bot}>")
        await side.stage.say(PLACES[row.input["place"]], says.removeprefix("<@{bot}> "), calls=calls)
        await done(side, soul)
        told = [one for one in await side.stage.world.trace() if one.by == "app"]  # type: ignore[attr-defined] # each has a world

    command = row.right["command"]
    if row.right.get("thought_about"):
        assert (carried_out(caplog), len(voice.requests)) == ([], 1)
    else:
        assert (len(voice.requests), carried_out(caplog)) == (row.right["calls"], WORD[command])
        assert told or command == "stop"


WORD = {one: [one.split()[0]] for row in rows("commands", "command") if (one := row.values[0].right.get("command"))}
WORD["stop"] = []  # obeyed before anything else, and answered by what it stops


@pytest.mark.parametrize("row", [*of("command", "slash"), *of("slash", "slash")])
async def test_slash_commands_of_discord(row: Row, home: Home) -> None:
    """Each is registered once, promised at once, and answered to the one who asked, even where the promise has lapsed."""
    row.knows_only("registered", "shown_to", "answers", "acknowledged_within_s", "registered_times")
    right, word = row.right, row.input["slash"].removeprefix("/")
    async with discord_side() as side, awake(side, home, Scripted(default=echo)) as soul:
        world = side.stage.world  # type: ignore[attr-defined] # Discord's own people
        await world.until_called("bulk_overwrite_global_application_commands")
        if row.id == "slash-late":
            await world.fault("create_interaction_response", "status", status=503)
            await world.set(interaction_life_s=0.0)
        await world.slash(discord.CHANNEL, discord.ANA, word)
        answered = "create_message" if row.id == "slash-late" else "create_followup_message"
        await world.until_called(answered)
        await soul.idle()
        given = [(one.to, one.kind) for one in await world.trace() if one.by == "app" and one.text]
        (claudius,) = [one for one in await world.commands() if one["name"] == "claudius"]
        calls = [one.route for one in await world.calls()]

    assert set(right.get("registered", ())) <= {one["name"] for one in claudius["options"]}
    assert len(given) == right.get("answers", 1)
    assert row.id == "slash-late" or given[0] == (discord.ANA, "response")
    assert calls.count("bulk_overwrite_global_application_commands") == right.get("registered_times", 1)
    assert calls.index("create_interaction_response") < calls.index(answered)


@pytest.mark.parametrize("row", of("help", "network"))
async def test_help(row: Row, home: Home, tmp_path: Path) -> None:
    """It says in few lines how to talk to the soul, and what it obeys; what is no command is told as briefly."""
    row.knows_only("lines_at_most", "names", "never", "says")
    asked, right = row.input, row.right
    networks = [asked["network"]] if isinstance(asked["network"], str) else asked["network"]
    for network in networks:
        if network == "terminal":
            told = await asyncio.to_thread(_typed, tmp_path, asked["says"])
        else:
            async with SIDES[network]() as side, awake(side, home, Scripted(default=echo)) as soul:
                if "slash" in asked:
                    await side.stage.command(DM, asked["slash"].removeprefix("/claudius "))
                else:
                    await side.stage.say(DM, asked["says"])
                await done(side, soul)
                told = "\n".join([*await side.stage.told(), *(one.text for one in await side.stage.visible())])
        assert 0 < len(told.splitlines()) <= right["lines_at_most"], told
        names = [NAMED.get(one, (one,)) for one in (*right.get("names", ()), *filter(None, [right.get("says")]))]
        assert not [words for words in names if any(word not in told for word in words)], told
        assert not [word for word in right.get("never", ()) if word in told]


NAMED = {
    "how to talk to it here": ("Write to me",),
    "reminders": ("Reminders", "remind me"),
    "/ensoul in a channel": ("In a channel: /ensoul",),
    "that this is no command, and how to ask": ("no command", "without a sign"),
}
"""What a text holds that names it."""


def _typed(root: Path, *lines: str) -> str:
    """Type lines in a terminal; return what was shown after the last of them, without the line itself."""
    machine = Machine(root, {"CLAUDIUS_HTTP_LISTEN": ""})
    with machine.terminal("chat") as terminal:
        terminal.until("/help says what else there is)")
        for line in lines:
            before = len(terminal.shown)
            terminal.type(line)
            if line != "/quit":
                terminal.until("/help" if line.startswith("/") else "unmute" if line == "!help" else line)
        if lines[-1] != "/quit":
            terminal.type("/quit")
        shown = terminal.rest()[before:]
    return "\n".join(one for one in shown.replace("\r", "").splitlines()[1:] if one.strip(" >›") and "/quit" not in one)


@dataclass
class Thread:
    """A soul on Slack whose clock runs ahead as far as the network's, and the place in which people write."""

    side: Side
    home: Home
    stack: contextlib.AsyncExitStack
    ahead: timedelta = timedelta()
    thread: str | None = None
    soul: Alive = field(init=False)

    @property
    def world(self) -> SlackWorld:
        """The people of this Slack."""
        assert isinstance(self.side.stage, SlackStage)
        return self.side.stage.world

    async def wake(self, opened: int) -> None:
        """Wake the soul."""
        self.soul = await self.stack.enter_async_context(
            alive(
                self.home,
                Scripted(default=self.reply),
                adapter=self.side.make(),
                settings=QUIETLY,
                clock=lambda: datetime.now(UTC) + self.ahead,
                running=lambda: time.monotonic() + self.ahead.total_seconds(),
                keeps_clock=True,
            )
        )
        await self.world.until_connected(1, opened=opened)

    def reply(self, request: Request) -> str:
        """Answer as an echo does, and plan what a person asks to be reminded of in five minutes."""
        if "remind me in 5 minutes" not in request.tail:
            return echo(request)
        at = datetime.now(UTC) + self.ahead + timedelta(minutes=5)
        act = json.dumps({"do": "remind", "at": at.isoformat(), "text": "oil the chain"})
        return by_tag(acts=act)(request)

    async def posts(self) -> int:
        """Count what everybody can see of the soul's."""
        return len(await self.side.stage.visible())

    async def begin(self, place: str) -> None:
        """Meet the people, and be called into the place of a row."""
        await self.world.add_user("U9", "oz")
        await self.world.join("C1", "U9", deliver=False)
        await self.wake(1)
        if "ensouled" in place:
            await self.world.slash("C1", "U9", "/ensoul", "on")
            await self.world.until_called("response_url")
            self.thread = await self.world.say("C1", "U1", f"<@{BOT_USER}> what do we need for the bike?")
            await done(self.side, self.soul)

    async def step(self, line: Any, *, is_last: bool) -> int | None:
        """Do one thing that a row says. Returns how many posts answered it; None if it calls for none."""
        before = await self.posts()
        ((who, text),) = line.items() if isinstance(line, dict) else (("ada", line),)
        if who == "restart":
            await self.stack.aclose()
            await self.wake(2)
            return None
        if who == "gap_min":
            self.ahead += timedelta(minutes=text, seconds=2)
            await self.world.shift_clock(self.ahead.total_seconds())
            if not is_last:
                return None
            async with asyncio.timeout(20):
                while await self.posts() == before:
                    await asyncio.sleep(0.01)
            await done(self.side, self.soul)
            return await self.posts() - before
        words = text.replace("{bot}", BOT_USER).replace("{ben}", "U2")
        await self.world.say("C1", USERS[who], words, thread_ts=self.thread)
        is_command = text.startswith("!")
        if self.soul.mind.is_paused() and not is_command:
            await self.world.until_called("reactions.add")  # its lane waits for the end of the pause
        else:
            await done(self.side, self.soul)
        return None if is_command else await self.posts() - before


USERS = {"ada": "U1", "ben": "U2", "owner": "U9"}
QUIETLY = {"CLAUDIUS_OWNERS": OWNER, "CLAUDIUS_RUNTIME_MERGE_WHILE_BUSY": "0", "CLAUDIUS_CLOCK_QUIET": "00:00-00:00"}


@pytest.mark.parametrize("row", effects("slack"))
async def test_what_a_command_must_do(row: Row, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quiet, pause and mute are absolute: whatever is said there gets no answer but where it is due one."""
    row.knows_only("answers", "reactions", "then", "done", "says")
    monkeypatch.setattr(scheduler, "LOOK_S", 0.05)
    right, says = row.right, row.input["says"]
    async with slack_side() as side, contextlib.AsyncExitStack() as stack:
        place = Thread(side, home, stack)
        await place.begin(row.input["place"])
        found = [await place.step(one, is_last=number == len(says)) for number, one in enumerate(says, 1)]
        reactions = [one.arguments["name"] for one in await place.world.calls("reactions.add")]
        is_paused, before = place.soul.mind.is_paused(), await place.posts()
        if "then" in right:
            await place.step({"owner": "!resume"}, is_last=True)
            assert await place.posts() == before + 1
        refused = [entry.text for entry in await place.world.trace() if entry.to == "U2"]

    assert right.get("answers", []) == [one for one in found if one is not None]
    assert reactions == [SIGNS[one] for one in right.get("reactions") or []]
    if "done" in right:
        assert is_paused is right["done"]
        assert [("oz" in one, "`" in one) for one in refused] == [(True, False)] * len(says)


async def test_a_quiet_that_was_missed_holds_for_what_was_missed_after_it(home: Home) -> None:
    """What was said while no one listened is accepted in order, the silence with it."""
    async with slack_side() as side, contextlib.AsyncExitStack() as stack:
        place = Thread(side, home, stack)
        await place.begin("an ensouled thread")
        before = await place.posts()
        await stack.aclose()
        for words in ("!quiet", "hm and tubeless?", f"<@{BOT_USER}> one more thing"):
            await place.world.say("C1", "U1", words, thread_ts=place.thread, deliver=False)
        await place.wake(2)
        async with asyncio.timeout(20):
            while await place.posts() == before:
                await asyncio.sleep(0.01)
        await done(side, place.soul)

        assert await place.posts() - before == 1


async def test_the_sign_of_a_pause_is_put_once_whatever_happens(home: Home) -> None:
    """It is owed from when a call is accepted: after a failure and a restart it stands, once; what calls nobody has none."""
    async with slack_side() as side, contextlib.AsyncExitStack() as stack:
        place = Thread(side, home, stack)
        await place.begin("channel")
        await place.step({"owner": "!pause"}, is_last=False)
        await place.world.fault("reactions.add", "status", status=503, times=1)
        await place.world.say("C1", "U1", "nobody is called here")
        called = await place.world.say("C1", "U1", f"<@{BOT_USER}> hello")
        await place.world.until_called("reactions.add")
        await stack.aclose()
        await place.wake(2)
        await place.world.until_called("reactions.add", 2)
        async with asyncio.timeout(20):
            while place.soul.records().counts(datetime.now(UTC))["outbox"]["pending"]:
                await asyncio.sleep(0.01)
        await place.step({"owner": "!resume"}, is_last=True)
        signs = [one.arguments["timestamp"] for one in await place.world.calls("reactions.add")]
        posts, counts = await place.posts(), place.soul.records().counts(datetime.now(UTC))["outbox"]

    assert (signs, posts) == ([called, called], 1)
    assert (counts["pending"], counts["failed"]) == (0, 0)


SIGNS = {"pause sign": "double_vertical_bar"}


@pytest.mark.parametrize("row", effects("terminal"))
def test_what_a_command_must_do_in_a_terminal(row: Row, tmp_path: Path) -> None:
    """What is answered by no one is not waited for."""
    row.knows_only("never")
    shown = _typed(tmp_path, *row.input["says"])

    assert not [words for words in row.right["never"] if words in shown]
