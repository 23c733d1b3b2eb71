"""The stage on Slack's loopback."""

from collections.abc import Sequence
from dataclasses import dataclass

from claudius.testing.adapter_contract.stage import (
    ANA,
    BEN,
    BOT,
    CHANNEL,
    DM,
    EVERYTHING,
    STRANGER,
    Shown,
    Stage,
    Trouble,
)
from lab.loopback.slack.state import BOT_TOKEN, BOT_USER
from lab.loopback.slack.world import SlackWorld

PLACES = {DM: "D1", CHANNEL: "C1"}
PEOPLE = {ANA: "U1", BEN: "U2", BOT: "U3", STRANGER: "U4"}
QUIET = (False, "false", "0", 0)
SIGNS = {"👍": "+1", "👎": "-1", "❤️": "heart", "🛑": "octagonal_sign", "🎉": "tada"}


@dataclass(frozen=True, slots=True)
class SlackStage(Stage):
    """People of a Slack on loopback."""

    world: SlackWorld
    name: str = "slack"
    own_person: str = "slack:T1:U1"

    can: frozenset[str] = EVERYTHING

    def seen(self, text: str) -> str:
        """Decode what Slack encodes."""
        return text.replace("&lt;", "<")

    async def say_as_us(self, where: str, text: str) -> None:
        """Say something under the app's own name."""
        await self.world.say(PLACES[where], BOT_USER, text)

    async def double(self, events: int) -> None:
        """Bring so many events to come twice."""
        await self.world.double_events(events)

    async def lose_answer(self, *, is_applied: bool) -> None:
        """Cut the connection of the next post."""
        await self.world.fault("chat.postMessage", "reset", is_applied=is_applied)

    async def say(
        self, where: str, text: str, *, by: str = ANA, thread: str = "", calls: bool = False, deliver: bool = True
    ) -> str:
        """Say something; give the message's id."""
        words = f"<@{BOT_USER}> {text}" if calls else text
        return await self.world.say(PLACES[where], PEOPLE[by], words, thread_ts=thread or None, deliver=deliver)

    async def edit(self, where: str, message: str, text: str, *, thread: str = "", calls: bool = False) -> None:  # noqa: ARG002 - other networks need the thread
        """Change a message."""
        await self.world.edit(PLACES[where], message, f"<@{BOT_USER}> {text}" if calls else text)

    async def unfurl(self, where: str, message: str, title: str = "Example", *, thread: str = "") -> None:  # noqa: ARG002 - other networks need the thread
        """Have Slack tell of a change though the words are the same."""
        await self.world.unfurl(PLACES[where], message, title)

    async def delete(self, where: str, messages: Sequence[str], *, thread: str = "") -> None:  # noqa: ARG002 - other networks need the thread
        """Take messages down, one by one."""
        for message in messages:
            await self.world.delete(PLACES[where], message)

    async def react(
        self,
        where: str,
        message: str,
        emoji: str,
        *,
        by: str = ANA,
        thread: str = "",  # noqa: ARG002 - other networks need the thread
        is_on: bool = True,
    ) -> None:
        """Put a sign on a message, or take it off."""
        react = self.world.react if is_on else self.world.unreact
        await react(PLACES[where], message, PEOPLE[by], SIGNS[emoji])

    async def upload(
        self,
        where: str,
        name: str,
        content: bytes,
        mimetype: str,  # noqa: ARG002 - Slack guesses it from the name
        *,
        text: str = "",
        calls: bool = False,
    ) -> str:
        """Show the app a file; give the message's id."""
        words = f"<@{BOT_USER}> {text}" if calls else text
        return await self.world.upload(PLACES[where], PEOPLE[ANA], name, content, text=words)

    async def begin_thread(self, message: str) -> str:
        """Give the thread of a message: it begins with the first reply."""
        return message

    async def refuse_history(self) -> None:
        """Let the app read no history from now on."""
        for method in ("conversations.history", "conversations.replies"):
            await self.world.fault(method, "error", error="missing_scope", times=99)

    async def visible(self) -> list[Shown]:
        """Give the app's messages, oldest first."""
        places = {channel: where for where, channel in PLACES.items()}
        return [
            Shown(places.get(one.channel, one.channel), one.thread_ts or "", one.text, one.ts)
            for one in await self.world.visible()
            if not one.to
        ]

    async def until_visible(self, count: int) -> list[Shown]:
        """Wait for so many."""
        await self.world.until_visible(count)
        return await self.visible()

    async def until_told(self) -> None:
        """Wait until every event is acknowledged or given up."""
        await self.world.until_quiet()

    async def meet(self, who: str) -> None:
        """Let another app be in the channel, or a person of another company."""
        await self.world.add_user(PEOPLE[who], who, **{"is_bot" if who == BOT else "is_stranger": True})
        await self.world.join(PLACES[CHANNEL], PEOPLE[who], deliver=False)

    async def hold(self) -> None:
        """Bring no event from now on."""
        await self.world.hold_events()

    async def release(self) -> None:
        """Bring what was held, in another order."""
        await self.world.release_events("shuffled", seed=6)

    async def trouble(self, what: Trouble) -> None:
        """Do harm."""
        match what:
            case "slow":
                await self.world.fault("chat.postMessage", "rate_limit", retry_after_s=1)
            case "closed":
                await self.world.archive(PLACES[CHANNEL], PEOPLE[ANA], deliver=False)
            case "dropped":
                await self.world.drop_sockets()
                await self.world.until_connected(1, opened=2)
            case "renewed":
                await self.world.spoil_tickets(1)
                await self.world.drop_sockets()
                await self.world.until_connected(1, opened=2)
            case "deaf":
                await self.world.sicken("deaf")
            case "shut out":
                await self.world.revoke(BOT_TOKEN)

    async def command(self, where: str, word: str) -> None:
        """Have Ana give `/claudius WORD`."""
        await self.world.slash(PLACES[where], PEOPLE[ANA], "/claudius", word)

    async def told(self) -> list[str]:
        """Give what was said to Ana alone."""
        return [one.text for one in await self.world.trace() if one.kind == "response" and one.to == PEOPLE[ANA]]

    async def is_quiet(self) -> bool:
        """Tell whether no post so far notified anybody or may unfold a link."""
        posts = [one.arguments for one in await self.world.calls("chat.postMessage")]
        asked = ("unfurl_links", "unfurl_media", "link_names")
        return bool(posts) and all(one[name] in QUIET for one in posts for name in asked)
