"""What a message shows besides its own words reaches the turn: each row of `cases/shown.json` on its network."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from both import BEN_ON_DISCORD, BEN_ON_SLACK, Side, discord_side, slack_side
from case_rows import Row, rows
from claudius.home import Home
from claudius.providers.scripted import Line, Scripted
from claudius.testing.alive import Alive
from lab.loopback.discord import state as discord_state
from lab.loopback.discord.world import DiscordWorld
from lab.loopback.slack import state as slack_state
from lab.loopback.slack.settings import MANIFEST_EVENTS
from lab.loopback.slack.world import SlackWorld
from lab.stages.slack import SlackStage
from prompt_records import FENCED, prompt_of, records

RIGHT = ("prompt_has", "as", "answers", "in_order", "says_in_prompt", "obeyed", "apart", "escaped", "calls", "or")
AS: Mapping[str, Mapping[str, Any]] = {
    "Ben's words, forwarded by Ada": {"kind": "shown", "how": "forwarded", "from": "Ben"},
    "data in the fence, Ben's words": {"kind": "shown", "how": "forwarded", "from": "Ben"},
    "Ben's words, answered by Ada": {"kind": "shown", "how": "answered", "from": "ben"},
    "a third party's words": {"kind": "shown", "how": "preview"},
    "overheard": {"kind": "message", "from": "ben"},
    "overheard, from Alerts; never owed an answer": {"kind": "shown", "from": "Alerts", "bot": True},
    "overheard, from Builds": {"kind": "shown", "from": "Builds", "bot": True},
    "others' words, overheard, for this turn alone": {"kind": "shown", "how": "above"},
    "Ada's words, spoken": {"kind": "message", "from": "ada"},
    "Rook's words": {"kind": "message", "from": "Rook"},
}
"""How the record in the prompt is marked that holds the words, by what a row says of it."""


def holds_up(row: Row, prompt: str) -> None:
    """Compare the prompt of the turn with what is right."""
    right, found = row.right, list(records(prompt))
    at = -1
    for words in right.get("prompt_has", ()):
        if right.get("or") and words not in prompt:
            assert [one for one in found if "listen" in str(one.get("unread", ""))], right["or"]
            continue
        assert words in prompt, words
        assert not right.get("in_order") or prompt.index(words) > at
        at = prompt.index(words)
    if right.get("as"):
        (words, *_), marked = right.get("prompt_has", ("",)), AS[right["as"]]
        held = [one for one in found if words in str(one.get("text", ""))]
        assert [one for one in held if marked.items() <= one.items()], (marked, held)
    if "obeyed" in right or "escaped" in right:  # whatever it says, it says in the fence alone
        outside, names = FENCED.sub("", prompt), [name for _, name in row.input.get("people", ())]
        assert [one for one in (*right.get("prompt_has", ()), *filter(None, names)) if one in outside] == []
    if right.get("apart"):
        who = {one["who"] for one in found if one["kind"] == "message" and one.get("from") == "Alex"}
        assert len(who) == 2
    match right.get("says_in_prompt"):
        case None:
            pass
        case "how much was left out":
            assert [one for one in found if one.get("cut")]
        case "that the original is gone":
            assert [one for one in found if one.get("how") == "answered" and one.get("unread")]
        case "that this is the beginning only":
            assert [one for one in found if "beginning" in str(one.get("unread", ""))]
        case other:
            raise AssertionError(other)


def filled(value: Any, names: Mapping[str, str]) -> Any:
    """Put the ids of the loopback server in the places of a row's input."""
    text = json.dumps(value)
    for name, what in names.items():
        text = text.replace("{" + name + "}", what)
    return json.loads(text)


def fields_of(given: Mapping[str, Any], *own: str) -> dict[str, Any]:
    """Return the fields of a row's message that the loopback's `say` has no argument for."""
    found = {name: value for name, value in given.items() if name not in own}
    # what Discord always sends, and the library cannot do without
    for one in found.get("message_snapshots", ()):
        one["message"] = {"timestamp": "2026-03-10T10:00:00+00:00", "edited_timestamp": None} | one["message"]
    for one in found.get("attachments", ()) if "url" in str(found.get("attachments")) else ():
        one.setdefault("proxy_url", one.get("url"))
    if "poll" in found:
        found["poll"].setdefault("expiry", "2030-03-10T10:00:00+00:00")
    return found


class OnSlack:
    """One row on Slack."""

    names: Mapping[str, str] = {
        "bot": slack_state.BOT_USER, "ada": "U1", "ben": BEN_ON_SLACK, "team": slack_state.TEAM, "channel": "C1",
        "bot_alerts": "B0ALERTS", "bot_workflow": "B0FLOW", "bot_ci": "B0CI", "bot_user_ci": "U0CI",
    }  # fmt: skip
    bots: Mapping[str, str] = {"B0ALERTS": "U0ALERTS", "B0FLOW": "U0FLOW", "B0CI": "U0CI"}
    settings: Mapping[str, str] = {}

    def __init__(self, world: SlackWorld) -> None:
        self.world = world

    async def settle(self, given: Mapping[str, Any]) -> None:
        """Let everybody in, under the names that the row gives them."""
        for bot, user in self.bots.items():
            await self.world.add_user(user, user.lower(), is_bot=True, bot_id=bot)
        called = {"U1": "ada", BEN_ON_SLACK: "ben"} | dict(given.get("people", ()))
        for user, name in called.items():
            await self.world.add_user(user, name or "somebody", display_name=name)
        await self.world.add_channel("G1", "three", kind="mpim", members=(slack_state.BOT_USER, "U1", BEN_ON_SLACK))

    def place(self, given: Mapping[str, Any]) -> str:
        """Return the channel of the row."""
        kind = given["place"].partition(" ")[0]
        return {"dm": "D1", "group": "G1"}.get(kind, "C1")

    async def say(self, place: str, event: Mapping[str, Any], thread: str | None) -> str:
        """Post one message; give its ts."""
        text = event.get("text", "")
        if isinstance(text, dict):
            text = text["repeat"] * text["times"] + text["then"]
        user = self.bots.get(event.get("bot_id", ""), event.get("user", "U1"))
        more = fields_of(event, "text", "user", "subtype", "deleted", "ts")
        return await self.world.say(place, user, text, thread_ts=thread, subtype=event.get("subtype"), fields=more)

    async def there(self, given: Mapping[str, Any], soul: Alive) -> str | None:
        """Post what stands there already; give the thread, if the row is about one."""
        place, thread = self.place(given), None
        if given["place"] == "own thread":
            thread = await self.world.say(place, "U1", f"<@{slack_state.BOT_USER}> shall we talk?")
            await self.world.until_visible(1)
            await soul.idle()
        deleted = []
        for one in given.get("there", ()):
            ts = await self.say(place, one, thread)
            thread = thread or (ts if "thread" in given["place"] else None)
            if one.get("deleted"):
                deleted.append(ts)
        if deleted:
            await self.world.say(place, BEN_ON_SLACK, "so", thread_ts=thread)
        for ts in deleted:
            await self.world.delete(place, ts)
        await self.quiet()
        await soul.idle()
        return thread

    async def act(self, given: Mapping[str, Any], thread: str | None, asked: Callable[[], Awaitable[None]]) -> None:
        """Post the row's own message, and what follows; `asked` waits until a model is called."""
        place, event, then = self.place(given), given["event"], given.get("then", {})
        if event.get("subtype") == "message_changed":
            await self.world.set(events=sorted(MANIFEST_EVENTS - {"app_mention"}))
            ts = next(one["ts"] for one in await self.world.messages(place))
            await self.world.edit(place, ts, event["message"]["text"])
            return
        ts = await self.say(place, event, thread)
        if (
            "edit" in then or "delete" in then
        ):  # while the soul thinks: earlier, the first call would bear the new words
            await asked()
        if "edit" in then:
            await self.world.edit(place, ts, then["edit"])
        if "delete" in then:
            await self.world.delete(place, ts)
        if "unfurl" in then:
            await self.world.until_visible(1)
            await self.world.unfurl(place, ts)

    async def quiet(self) -> None:
        """Wait until every event was taken."""
        await self.world.until_quiet()

    async def answers(self) -> int:
        """Count what the soul posted."""
        return len(await self.world.visible())


class OnDiscord:
    """One row on Discord."""

    names: Mapping[str, str] = {
        "bot": discord_state.BOT_USER, "ada": discord_state.ANA, "ben": BEN_ON_DISCORD, "cem": "400000000000000003",
        "bot_alerts": "400000000000000009", "webhook": "WEBHOOK", "guild": discord_state.GUILD,
        "channel": discord_state.CHANNEL, "files": "http://127.0.0.1:9/files",
    }  # fmt: skip

    def __init__(self, world: DiscordWorld) -> None:
        self.world = world
        self.settings: dict[str, str] = {}
        self.webhook = ""

    async def settle(self, given: Mapping[str, Any]) -> None:
        """Let everybody in."""
        await self.world.add_user(self.names["cem"], "cem")
        await self.world.add_user(self.names["bot_alerts"], "Alerts", is_bot=True)
        self.webhook = await self.world.add_webhook(discord_state.CHANNEL, "Rook")
        if "setting" in given.get("then", {}) or "setting" in given:
            self.settings["CLAUDIUS_BOTS_ALLOW"] = f"discord:@me:{given.get('trusted', self.webhook)}"

    def place(self, given: Mapping[str, Any]) -> str:
        """Return the channel of the row."""
        return discord_state.DM if given["place"] == "dm" else discord_state.CHANNEL

    async def say(self, place: str, event: Mapping[str, Any], there: Sequence[str]) -> str:
        """Post one message; give its id."""
        author, reply_to = event.get("author", discord_state.ANA), ""
        if isinstance(author, dict) or author == "WEBHOOK":
            author = self.webhook
        if event.get("type") == 19:
            reply_to = event["message_reference"]["message_id"].replace("{there.0}", there[0] if there else "900")
        own = (
            "author",
            "content",
            "webhook_id",
            *(("type", "message_reference", "referenced_message", "mentions") if reply_to else ()),
        )
        return await self.world.say(
            place, author, event.get("content", ""), reply_to=reply_to, fields=fields_of(event, *own)
        )

    async def there(self, given: Mapping[str, Any], soul: Alive) -> list[str]:
        """Post what stands there already; give the ids, or the thread alone."""
        place, found = self.place(given), list[str]()
        for one in given.get("there", ()):
            found.append(await self.say(place, one, ()))
        await self.quiet()
        if given["place"] == "dm":  # each of Ada's is answered
            own = [one for one in given.get("there", ()) if one["author"] == discord_state.BOT_USER]
            await self.world.until_visible(len(found) - len(own))
        await soul.idle()
        if given["place"] == "thread on a message":
            return [await self.world.create_thread(place, BEN_ON_DISCORD, "late", message=found[0])]
        return found

    async def act(self, given: Mapping[str, Any], there: list[str], asked: Callable[[], Awaitable[None]]) -> None:  # noqa: ARG002 - as on Slack
        """Post the row's own message, and what follows."""
        place, then = there[0] if given["place"].startswith("thread") else self.place(given), given.get("then", {})
        message = await self.say(place, given["event"], there)
        if "delete" in then:
            await self.world.delete(place, message)
            await self.quiet()
        if "event" in then:
            await self.say(place, then["event"], there)

    async def quiet(self) -> None:
        """Wait until every event was taken."""
        await self.world.until_heard()

    async def answers(self) -> int:
        """Count what the soul posted of its own accord."""
        return len(await self.world.visible())


async def lived(row: Row, home: Home, on: Any, side: Side) -> None:
    """Live one row with a whole soul on its network, and compare."""
    row.knows_only(*RIGHT)
    given = filled(row.input, on.names)
    await on.settle(given)
    then = given.get("then", {})
    voice = Scripted([Line(hang=True)] if "edit" in then or (on.names.get("team") and "delete" in then) else [])

    async def asked() -> None:
        async with asyncio.timeout(20):
            while not voice.requests:
                await asyncio.sleep(0.002)

    async with side.wake(home, voice, **{"CLAUDIUS_RUNTIME_FOLLOW": "thread", **on.settings}) as soul:
        there = await on.there(given, soul)
        before = await on.answers()
        voice.requests.clear()
        await on.act(given, there, asked)
        await on.quiet()
        await soul.idle()
        if right := row.right.get("answers", 1):
            await side.stage.until_visible(before + right)
        await soul.idle()
        answers = await on.answers() - before

    assert answers == row.right.get("answers", 1)
    assert len(voice.requests) == row.right.get("calls", len(voice.requests))
    if voice.requests and (answers or "prompt_has" in row.right):
        holds_up(row, prompt_of(voice.requests[-1]))


@pytest.mark.parametrize(
    ("network", "row"),
    [
        pytest.param(one, *row.values, id=f"{one}-{row.id}", marks=row.marks)
        for one in ("slack", "discord")
        for row in rows("shown", one)
    ],
)
async def test_what_a_message_shows(network: str, row: Row, home: Home) -> None:
    """It stands in the prompt of its turn, marked as whose it is, and the message is answered once where it is owed."""
    async with slack_side() if network == "slack" else discord_side() as side:
        stage = side.stage
        on = OnSlack(stage.world) if isinstance(stage, SlackStage) else OnDiscord(stage.world)
        await lived(row, home, on, side)
