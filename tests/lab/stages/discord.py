"""The stage on Discord's loopback."""

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
from lab.loopback.discord import state
from lab.loopback.discord.world import DiscordWorld

PLACES = {DM: state.DM, CHANNEL: state.CHANNEL}
PEOPLE = {ANA: state.ANA, BEN: "400000000000000002", BOT: "400000000000000003", STRANGER: "400000000000000004"}
US = f"<@{state.BOT_USER}>"
SUPPRESS_EMBEDS = 1 << 2


@dataclass(frozen=True, slots=True)
class DiscordStage(Stage):
    """People of a Discord on loopback."""

    world: DiscordWorld
    name: str = "discord"
    own_person: str = f"discord:@me:{state.ANA}"

    can: frozenset[str] = EVERYTHING

    def seen(self, text: str) -> str:
        """Encode nothing."""
        return text

    async def say_as_us(self, where: str, text: str) -> None:
        """Say something under the app's own name."""
        await self.world.say(PLACES[where], state.BOT_USER, text)

    async def double(self, events: int) -> None:
        """Bring so many messages to come twice."""
        await self.world.double_events(events, "MESSAGE_CREATE")

    async def lose_answer(self, *, is_applied: bool) -> None:
        """Cut the connection of the next post."""
        await self.world.fault("create_message", "reset", is_applied=is_applied)

    async def say(
        self, where: str, text: str, *, by: str = ANA, thread: str = "", calls: bool = False, deliver: bool = True
    ) -> str:
        """Say something; give the message's id."""
        words = f"{US} {text}" if calls else text
        place = await self.world.open_dm(PEOPLE[by]) if by == STRANGER else thread or PLACES[where]
        return await self.world.say(place, PEOPLE[by], words, deliver=deliver)

    async def edit(self, where: str, message: str, text: str, *, thread: str = "", calls: bool = False) -> None:
        """Change a message."""
        await self.world.edit(thread or PLACES[where], message, f"{US} {text}" if calls else text)

    async def unfurl(self, where: str, message: str, title: str = "Example", *, thread: str = "") -> None:
        """Have Discord tell of a change though the words are the same."""
        await self.world.unfurl(thread or PLACES[where], message, title)

    async def delete(self, where: str, messages: Sequence[str], *, thread: str = "") -> None:
        """Take messages down: one, or several at once."""
        if len(messages) > 1:
            await self.world.bulk_delete(thread or PLACES[where], messages)
            return
        for message in messages:
            await self.world.delete(thread or PLACES[where], message)

    async def react(
        self, where: str, message: str, emoji: str, *, by: str = ANA, thread: str = "", is_on: bool = True
    ) -> None:
        """Put a sign on a message, or take it off."""
        react = self.world.react if is_on else self.world.unreact
        await react(thread or PLACES[where], message, PEOPLE[by], emoji)

    async def upload(
        self, where: str, name: str, content: bytes, mimetype: str, *, text: str = "", calls: bool = False
    ) -> str:
        """Show the app a file; give the message's id."""
        words = f"{US} {text}" if calls else text
        return await self.world.upload(PLACES[where], PEOPLE[ANA], name, content, mimetype=mimetype, text=words)

    async def begin_thread(self, message: str) -> str:
        """Begin a thread on a message of the channel."""
        return await self.world.create_thread(PLACES[CHANNEL], PEOPLE[ANA], "talk", message=message)

    async def refuse_history(self) -> None:
        """Let the app read no history from now on."""
        await self.world.fault("get_channel_messages", "status", status=403, times=99)

    async def visible(self) -> list[Shown]:
        """Give the app's messages, oldest first."""
        places = {channel: where for where, channel in PLACES.items()}
        return [
            Shown(places.get(one.channel, CHANNEL), "" if one.channel in places else one.channel, one.text, one.message)
            for one in await self.world.visible()
            if not one.to
        ]

    async def until_visible(self, count: int) -> list[Shown]:
        """Wait for so many."""
        await self.world.until_visible(count)
        return await self.visible()

    async def until_told(self) -> None:
        """Wait until every live session has taken all its events."""
        await self.world.until_heard()

    async def meet(self, who: str) -> None:
        """Let another app be in the server, or a person who is in none of ours."""
        await self.world.add_user(PEOPLE[who], who, guilds=(state.GUILD,) if who == BOT else (), is_bot=who == BOT)

    async def hold(self) -> None:
        """Bring no event from now on."""
        await self.world.hold_events()

    async def release(self) -> None:
        """Bring what was held, in another order."""
        await self.world.release_events("shuffled", seed=6)

    async def trouble(self, what: Trouble) -> None:
        """Do harm."""
        opened = (await self.world.counts())["opened"] + 1
        match what:
            case "slow":
                await self.world.fault("create_message", "rate_limit", retry_after_s=1.0)
            case "closed":
                await self.world.delete_channel(PLACES[CHANNEL])
            case "dropped":
                await self.world.drop_sockets()
                await self.world.until_connected(1, opened=opened)
            case "renewed":
                await self.world.invalidate(is_resumable=False)
                await self.world.until_connected(1, opened=opened)
            case "deaf":
                await self.world.sicken("deaf")
            case "shut out":
                await self.world.revoke()

    async def command(self, where: str, word: str) -> None:
        """Have Ana give `/claudius WORD`."""
        await self.world.until_called("bulk_overwrite_global_application_commands")
        await self.world.slash(PLACES[where], PEOPLE[ANA], f"claudius {word}")

    async def told(self) -> list[str]:
        """Give what was said to Ana alone."""
        return [one.text for one in await self.world.trace() if one.kind == "response" and one.to == PEOPLE[ANA]]

    async def is_quiet(self) -> bool:
        """Tell whether no post so far notified anybody or may unfold a link."""
        posts = [one.body for one in await self.world.calls("create_message")]
        quiet = (one["allowed_mentions"]["parse"] == [] and one["flags"] & SUPPRESS_EMBEDS for one in posts)
        return bool(posts) and all(quiet) and not any(one.pings for one in await self.world.visible())
