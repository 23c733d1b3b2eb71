"""T8 to T10: a question for consent as both networks show it, and whose press, thumb or word decides it."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from both import BEN_ON_DISCORD, BEN_ON_SLACK, SIDES, Side
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.adapter_contract.stage import ANA, BEN, CHANNEL, DM
from claudius.testing.alive import Alive
from claudius.tool import JSON, Tool, ToolCall
from lab.stages.discord import PEOPLE as ON_DISCORD
from lab.stages.slack import PEOPLE as ON_SLACK
from minds import lent, until

OWNER = {"slack": f"slack:T1:{BEN_ON_SLACK}", "discord": f"discord:@me:{BEN_ON_DISCORD}"}
ARGS = {"path": "notes/<@U1> `x` \u202e&amp; a.md"}
SHOWN = r'path: "notes/\u003c@U1\u003e \u0060x\u0060 \u202e\u0026amp; a.md"'
PAGE = "Read https://example.org/1 please."
ALONE = "Only ben may decide this."


@dataclass
class Asked:
    """A soul that has asked for something in a thread of a channel whose owner, Ben, reads along."""

    side: Side
    soul: Alive
    used: list[JSON] = field(default_factory=list)
    id: str = ""
    cause: str = ""

    @property
    def world(self) -> Any:
        """The network."""
        return self.side.stage.world  # type: ignore[attr-defined]  # either of two

    @property
    def is_slack(self) -> bool:
        """Whether it is Slack."""
        return self.side.stage.name == "slack"

    async def posts(self) -> list[Any]:
        """Return what everybody can read where it was asked."""
        found = [one for one in await self.world.visible() if not one.to]
        return [one for one in found if one.channel == found[0].channel]

    async def told(self, who: str) -> list[str]:
        """Return what one person alone could read."""
        to = (ON_SLACK if self.is_slack else ON_DISCORD)[who]
        return [one.text for one in await self.world.visible() if one.to == to]

    async def press(self, who: str, verb: str, call: str = "", post: int = -1) -> None:
        """Have a person press a button, by default of the question itself."""
        on, value = (await self.posts())[post], call or self.call.id
        if self.is_slack:
            await self.world.click(on.channel, on.ts, ON_SLACK[who], f"tool_{verb}", value)
        else:
            await self.world.press(on.channel, on.message, ON_DISCORD[who], f"tool:{verb}:{value}")

    async def thumb(self, who: str, sign: str, post: int = -1) -> None:
        """Have a person put a thumb on a post."""
        on = (await self.posts())[post]
        await self.side.stage.react(CHANNEL, on.ts if self.is_slack else on.message, sign, by=who, thread=on.channel)

    async def say(self, who: str, text: str) -> None:
        """Have a person say something where it was asked."""
        on = (await self.posts())[0]
        thread = on.thread_ts if self.is_slack else on.channel
        await self.side.stage.say(CHANNEL, text, by=who, thread=thread)

    @property
    def call(self) -> ToolCall:
        """The call that was asked for."""
        found = self.soul.mind.store.calls.find(self.id)
        assert found
        return found

    async def sees(self, look: Callable[[], Awaitable[bool]]) -> None:
        """Wait until it is so."""
        async with asyncio.timeout(10):
            while not await look():
                await asyncio.sleep(0.01)

    async def is_told(self, who: str, line: str) -> None:
        """Wait until one person alone could read a line."""
        await self.sees(lambda: _in(line, self.told(who)))

    async def says(self, verdict: str) -> None:
        """Wait until the question's post says what was decided."""
        await self.sees(lambda: _in(verdict, self.shown()))

    async def shown(self) -> str:
        """Return what the question's post says now."""
        return (await self.card())[0]

    async def card(self) -> tuple[str, list[str]]:
        """Return what the question's post says now, and what stands on its buttons."""
        on = (await self.posts())[1]
        if self.is_slack:
            message = self.world.service.space.channels[on.channel].find(on.ts)
            words = [one["text"]["text"] for one in message.blocks if one["type"] == "section"]
            words += [one["elements"][0]["text"] for one in message.blocks if one["type"] == "context"]
            labels = [
                one["text"]["text"] for row in message.blocks if row["type"] == "actions" for one in row["elements"]
            ]
            return "\n".join(words).replace("&amp;", "&"), labels
        message = self.world.service.space.channels[on.channel].find(on.message)
        return message.content, [one["label"] for row in message.components for one in row["components"]]


async def _in(part: str, whole: Awaitable[Any]) -> bool:
    return part in await whole


async def _many(count: int, found: Awaitable[Sequence[Any]]) -> bool:
    return len(await found) >= count


def voice(request: Request) -> str:
    """Ask for what is wanted with "please"; say what became of it."""
    heard = request.tail.rpartition("## Current Message")[2]
    if '"kind":"tool"' in heard:
        return "<external_dialogue>It says 42.</external_dialogue>"
    if "please" not in heard:
        return "<external_dialogue>Mhm.</external_dialogue>"
    args = {"url": found[0]} if (found := re.findall(r"https://[\w./]+", heard)) else ARGS
    wish = json.dumps({"tool": "web.read" if found else "test.do", "args": args})
    return f"<tool_use>{wish}</tool_use><external_dialogue>Shall I?</external_dialogue>"


def doing(used: list[JSON], cls: str) -> list[Tool]:
    """Return the tools, which keep what they were used with."""

    async def _run(args: JSON, _: ToolCall) -> str:
        used.append(args)
        return "42"

    return [lent("test.do", cls, _run, "path"), lent("web.read", "read", _run, "url")]


@asynccontextmanager
async def asking(
    home: Home, network: str, cls: str = "read", *, where: str = CHANNEL, again: int = 0, words: str = "Do it, please."
) -> AsyncIterator[Asked]:
    """Let what Ana says end in a question; in the channel Ben may decide it. The soul is woken `again` meanwhile."""
    used: list[JSON] = []
    async with SIDES[network]() as side:
        for n in range(again + 1):
            async with side.wake(
                home, Scripted(default=voice), tools=doing(used, cls), CLAUDIUS_OWNERS=OWNER[network]
            ) as soul:
                here = Asked(side, soul, used)
                if n == 0:
                    cause = await side.stage.say(where, words if where == CHANNEL else PAGE, calls=where == CHANNEL)
                here.cause = cause
                await until(lambda: len(soul.mind.store.calls.waiting()) == 1)
                here.id = soul.mind.store.calls.waiting()[0].id
                await soul.until_said(2, side.stage)
                if n == again:
                    yield here


BOTH = pytest.mark.parametrize("network", ["slack", "discord"])


@BOTH
async def test_a_question_is_a_post_with_its_arguments_and_buttons(network: str, home: Home) -> None:
    """The words stand apart; the arguments are the row's, and nothing in them is a mention, a format or hidden."""
    async with asking(home, network) as here:
        words, question = [one.text for one in await here.posts()]
        text, labels = await here.card()

    assert words == "Shall I?"
    assert "May I use test.do? (read, until " in question
    assert SHOWN in text
    assert "Only ben may decide this: by a button, 👍 or 👎, or with !allow and !deny." in text
    assert labels == ["Allow for this talk", "Allow", "No"]


@BOTH
@pytest.mark.parametrize("way", ["press", "thumb", "word"])
async def test_the_first_of_the_owners_decisions_counts_once(network: str, way: str, home: Home) -> None:
    """T8, T9: a member is told alone; Ben decides, in any way; his second press is told that it is decided."""
    async with asking(home, network) as here:
        await here.press(ANA, "allow")
        await here.is_told(ANA, ALONE)
        assert here.used == []
        match way:
            case "press":
                await here.press(BEN, "talk")
            case "thumb":
                await here.thumb(BEN, "👍")
            case "word":
                await here.say(BEN, "!allow")
        await until(lambda: len(here.used) == 1)
        await here.sees(lambda: _many(3, here.posts()))
        await here.says("Allowed by ben.")
        await here.press(BEN, "deny", post=1)
        await here.is_told(BEN, "That is decided: Allowed by ben.")
        text, labels = await here.card()
        said = [one.text for one in await here.posts()]
        state, audited = here.call.state, [one["act"] for one in here.soul.records().audit("", 9)]

    assert (state, audited) == ("done", ["tool_grant" if way == "press" else "tool_allow"])
    assert here.used == [ARGS]
    assert labels == []
    assert SHOWN in text
    assert said[2:] == ["It says 42."]


@BOTH
async def test_what_is_no_consent_starts_nothing(network: str, home: Home) -> None:
    """T10: "yes", a press on another post or for another call; and a thumb decides no `send`."""
    async with asking(home, network, "send") as here:
        await here.say(BEN, "yes")
        await here.press(BEN, "allow", post=0)
        await here.press(BEN, "allow", "a" * 16 + "/0")
        await here.press(BEN, "talk")
        await here.thumb(BEN, "👍", post=1)
        await here.sees(lambda: _many(3, here.told(BEN)))
        await here.soul.idle()
        told = await here.told(BEN)
        assert (here.call.state, here.used) == ("waiting", [])
        assert "Only ben may decide this: by a button, with !allow and !deny." in await here.shown()

        await here.press(BEN, "deny", post=1)
        await here.says("Refused by ben: I leave it.")
        await here.sees(lambda: _many(4, here.posts()))
        state, last = here.call.state, (await here.posts())[-1].text

    assert sorted(told) == ["Nothing waits here for a word of yours."] * 2 + ["That can be allowed only once."]
    assert (state, last, here.used) == ("refused", "Refused by ben: I leave it.", [])


@BOTH
async def test_in_private_its_person_allows_a_talk_once(network: str, home: Home) -> None:
    """T7, T38: three links that she wrote in one talk ask one question; whoever is elsewhere learns of none."""
    async with asking(home, network, where=DM) as here:
        if here.is_slack:  # Discord answers a mention in a thread
            await here.side.stage.say(CHANNEL, f"!allow {here.id}", by=BEN, calls=True)
            await here.is_told(BEN, "Nothing waits here for a word of yours.")
        await here.press(ANA, "talk")
        await here.sees(partial(_used, here, 1))
        for n in (2, 3):
            await here.side.stage.say(DM, f"And https://example.org/{n} please.")
            await here.sees(partial(_used, here, n))
        await here.soul.idle()
        waiting = here.soul.mind.store.calls.waiting()

    assert [one["url"] for one in here.used] == [f"https://example.org/{n}" for n in (1, 2, 3)]
    assert waiting == ()


async def _used(here: Asked, times: int) -> bool:
    return len(here.used) == times


@BOTH
async def test_the_button_of_an_old_question_works_after_restarts(network: str, home: Home) -> None:
    """T12: two restarts later the very post decides; there is one card, and one start."""
    async with asking(home, network, again=2) as here:
        await here.press(BEN, "allow", post=1)
        await here.says("Allowed by ben.")
        await here.sees(lambda: _many(3, here.posts()))
        said = [one.text for one in await here.posts()]

    assert said[2:] == ["It says 42."]
    assert here.used == [ARGS]


@BOTH
@pytest.mark.parametrize("change", ["edited", "deleted", "stopped"])
async def test_what_is_taken_back_is_no_question_any_more(network: str, change: str, home: Home) -> None:
    """T11: its post says so at once, and a press of a button that somebody still sees starts nothing."""
    async with asking(home, network) as here:
        match change:
            case "edited":
                await here.side.stage.edit(CHANNEL, here.cause, "Never mind.", calls=True)
            case "deleted":
                await here.side.stage.delete(CHANNEL, [here.cause])
            case "stopped":
                await here.say(ANA, "!stop")
        await here.says("Taken back.")
        text, labels = await here.card()
        await here.press(BEN, "allow", post=1)
        await here.is_told(BEN, "That is decided: Taken back.")
        audited = [one["act"] for one in here.soul.records().audit("", 9)]

    assert (here.used, labels, SHOWN in text) == ([], [], True)
    assert audited == []


@BOTH
async def test_what_edited_words_ask_for_is_asked_anew(network: str, home: Home) -> None:
    """T11: as often as they are edited; the last question stands once what was written from the old words is gone."""
    async with asking(home, network, words=PAGE) as here:
        for n, page in enumerate(["https://example.org/first", "https://example.com/second"]):
            await here.side.stage.edit(CHANNEL, here.cause, f"Read {page} please.", calls=True)
            await here.sees(lambda count=2 * n + 4: _many(count, here.posts()))
            await until(lambda: not here.soul.server._forgetting.is_unsaying)
            waiting = {one.id: one.args for one in here.soul.mind.store.calls.waiting()}
            assert list(waiting.values()) == [{"url": page}]
        await here.press(BEN, "allow", *waiting)
        await here.sees(lambda: _many(7, here.posts()))
    assert here.used == [{"url": page}]


async def test_a_press_is_acknowledged_in_time_on_a_slow_disk(home: Home) -> None:
    """T9: Slack waits three seconds; the press is stored when the disk is free, and counts."""
    async with asking(home, "slack") as here:
        adapter: Any = here.soul.server._lanes._adapters["slack"]
        adapter._timings = replace(adapter._timings, press_s=0.05)
        free, accept = asyncio.Event(), adapter._accept

        async def _slow(perception: Any) -> bool:
            await free.wait()
            return bool(await accept(perception))

        adapter._accept = _slow
        await here.press(BEN, "allow")
        await here.sees(lambda: _acked(here))
        before = here.call.state
        free.set()
        await here.says("Allowed by ben.")

    assert before == "waiting"


async def _acked(here: Asked) -> bool:
    return [one.fate for one in await here.world.deliveries() if one.kind == "interactive"] == ["acked"]
