"""Handle Discord's slash commands.

Commands are registered when they have changed, deferred on arrival, and answered to the person who gave them.

Source: the chat design, section 2.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import discord
from discord import app_commands

from claudius.adapters.discord.api_errors import FAILURES, classify
from claudius.adapters.discord.incoming import DIRECT, NETWORK, Belonging, Where, moment, position
from claudius.adapters.discord.outgoing import nonce
from claudius.cognition.output.splitting import in_posts
from claudius.foreign import unquoted
from claudius.intent import ShownThought
from claudius.perception import CommandExtra, Kind, Perception, Place, Standing, private
from claudius.prompt import valid
from claudius.runtime.adapter import Accept
from claudius.runtime.commands.words import TABLE, apart

log = logging.getLogger(__name__)

POST_CHARS, MOST_POSTS = 2000, 4
PROMISE_S = 3.0
"""How long Discord waits for the promise of an answer."""
ELSEWHERE = ("stop", "home")
"""Words that are no subcommand: the one is obeyed at once, where it is said, the other belongs to Slack."""
NOT_HERE = "I may not talk with you here."
NOT_NOW = "I cannot take that just now: say it again in a moment."

Take = Callable[[discord.Interaction, str], Awaitable[None]]
"""Handles one command, given the interaction and its words."""


class Tree(app_commands.CommandTree[discord.Client]):
    """The commands of one client."""

    def __init__(self, client: discord.Client, take: Take) -> None:
        super().__init__(client)
        for command in (_claudius(take), _ensoul(take)):
            self.add_command(command)

    async def register(self) -> None:
        """Register the commands if Discord has different ones. Never raises."""
        try:
            there = [_shape(one.to_dict()) for one in await self.fetch_commands()]
            ours = [_shape(one.to_dict(self)) for one in self.get_commands()]
            if sorted(there, key=str) != sorted(ours, key=str):
                await self.sync()
        except (app_commands.AppCommandError, *FAILURES) as error:
            log.warning("the commands are not registered", extra={"error": unquoted(error)})

    async def on_error(self, interaction: discord.Interaction, error: app_commands.AppCommandError, /) -> None:
        """Log an internal error instead of printing it."""
        log.error("a command was not understood", extra={"id": interaction.id}, exc_info=error)


def _claudius(take: Take) -> app_commands.Group:
    group = app_commands.Group(name="claudius", description="What I know of you, and what becomes of it")
    _add(group, take, "", {word: _about(word) for word, one in TABLE.items() if not one.args and word not in ELSEWHERE})

    @group.command(description=_about("cancel"))
    async def cancel(interaction: discord.Interaction, plan: str) -> None:
        await take(interaction, f"cancel {plan}")

    @group.command(description=_about("correct"))
    async def correct(interaction: discord.Interaction, text: str) -> None:
        await take(interaction, f"correct {text}")

    @group.command(description="Be one person on two networks: ask for a code, say one, or answer yes or no")
    async def link(interaction: discord.Interaction, code: str = "") -> None:
        await take(interaction, f"link {code}")

    forget = app_commands.Group(name="forget", description="Have me forget", parent=group)

    @forget.command(description=_about("forget"))
    async def me(interaction: discord.Interaction, yes: bool = False) -> None:  # noqa: FBT001, FBT002 - an option
        await take(interaction, "forget me yes" if yes else "forget me")

    @forget.command(description="Lists what I keep of you with these words, or deletes what you chose by its numbers")
    async def what(interaction: discord.Interaction, words: str) -> None:
        await take(interaction, f"forget {words}")

    @group.command(description=_about("keep"))
    async def keep(interaction: discord.Interaction, what: str) -> None:
        await take(interaction, f"keep {what}")

    proactive = app_commands.Group(name="proactive", description="Whether I may write to you first", parent=group)
    _add(proactive, take, "proactive ", {"on": "I may write to you first", "off": "I write only when you write to me"})
    return group


def _about(word: str) -> str:
    command = TABLE[word]
    return f"{'Owners: ' if command.group == 'owners' else ''}{command.about[0].upper()}{command.about[1:]}"


def _ensoul(take: Take) -> app_commands.Group:
    group = app_commands.Group(name="ensoul", description="How I take part in this channel")
    ways = {
        "on": "I take part here",
        "off": "I answer here only when I am mentioned",
        "listen": "I hear and remember, and stay silent",
        "status": "How I take part here",
    }
    _add(group, take, "ensoul ", ways)
    return group


def _add(group: app_commands.Group, take: Take, prefix: str, commands: Mapping[str, str]) -> None:
    """Add commands without an option, each with its description. A command stands for the prefix and its name."""
    for name, about in commands.items():
        group.add_command(app_commands.Command(name=name, description=about, callback=_plain(take, prefix + name)))


def _plain(take: Take, words: str) -> Any:
    async def callback(interaction: discord.Interaction) -> None:
        await take(interaction, words)

    return callback


def _shape(command: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a command that users see. Pure."""
    options = [_shape(one) for one in command.get("options") or ()]
    facts = {key: command[key] for key in ("name", "description") if key in command}
    kind = command.get("type", 1)
    return facts | {"type": int(getattr(kind, "value", kind)), "options": options}


async def ask(
    interaction: discord.Interaction,
    text: str,
    find: Callable[[], Awaitable[Where]],
    know: Callable[[str], Awaitable[Belonging]],
    accept: Accept,
) -> None:
    """Promise an answer, find out where and by whom the command was given, then accept it.

    Raises: ClaudiusError, and what an API call raises.
    """
    try:
        async with asyncio.timeout(PROMISE_S):
            await interaction.response.defer(ephemeral=True, thinking=True)
    except FAILURES as error:  # the command is accepted all the same and answered directly
        log.warning("an answer was not promised", extra={"id": interaction.id, "error": unquoted(error)})
    try:
        where = await find()
        heard = await accept(perceive_command(interaction, text, where, await know(where.guild)))
    except (discord.Forbidden, discord.NotFound):
        heard = False  # a place that we cannot see
    except Exception:  # whatever it was, the person who waits is told, and then it flies on
        await _tell(interaction, NOT_NOW)
        raise
    if not heard:
        await _tell(interaction, NOT_HERE)


async def _tell(interaction: discord.Interaction, line: str) -> None:
    """Tell the user why there is no answer. Never raises."""
    try:
        await interaction.followup.send(line, ephemeral=True)
    except FAILURES as error:
        log.info("nobody was told", extra={"id": interaction.id, "error": unquoted(error)})


def perceive_command(interaction: discord.Interaction, text: str, where: Where, who: Belonging) -> Perception:
    """Return a command as a perception; `who` is what its speaker is there. Pure."""
    user = str(interaction.user.id)
    person = f"{NETWORK}:{DIRECT}:{user}"
    conversation = where.conversation
    return Perception(
        key=f"{NETWORK}:cmd:{interaction.id}",
        conversation=apart(conversation, person),
        audience=private(person),
        person=person,
        name=valid(interaction.user.display_name),
        text=valid(text),
        at=moment(str(interaction.id)),
        position=position(str(interaction.id)),
        kind=Kind.COMMAND,
        owes=False,
        standing=Standing.MEMBER if who.guilds else Standing.OUTSIDER,
        is_bot=interaction.user.bot,
        extra=CommandExtra(
            where=conversation,
            receipt=str(interaction.message.id) if interaction.message else "",
            guilds=who.guilds,
            roles=who.roles,
            locale=str(interaction.locale),
            own={"application": str(interaction.application_id), "token": interaction.token},
        ),
    )


RESTS_S = (1.0, 3.0)
"""Pauses between the attempts of a post whose outcome is unknown."""
SPOILER_CHARS = 900
"""Each may need a mark before it, and a post holds 2,000."""
_MARKS = re.compile(r"([\\*`_~|])")
_QUIET: dict[str, Any] = {"allowed_mentions": discord.AllowedMentions.none(), "suppress_embeds": True}


class DiscordTeller:
    """Tells one person something: the answer to a command, a line, a thought."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client

    async def answer(self, perception: Perception, text: str) -> None:
        """Answer where only the person who asked sees it: in place or by direct message. Raises: DeliveryError."""
        _, parts = in_posts(text, POST_CHARS, MOST_POSTS)
        try:
            said = await self._in_place(perception, parts)
            if said == len(parts):
                return
            place = Place.of(perception.conversation)
            channel: discord.abc.Messageable
            if place.workspace == DIRECT:
                channel = self._client.get_partial_messageable(int(place.channel))
            else:
                channel = await self._direct(perception.person)
            for number, part in enumerate(parts[said:], said):
                await _post(channel, part, f"{perception.key} {number}")
        except FAILURES as error:
            raise classify(error) from error

    async def tell(self, person: str, text: str, key: str = "") -> None:
        """Send a line to one person in a direct message, once a `key`, by default the text. Raises: DeliveryError."""
        try:
            await _post(await self._direct(person), text, f"{person} {key or text}")
        except FAILURES as error:
            raise classify(error) from error

    async def show_thought(self, thought: ShownThought) -> None:
        """Post a thought as a spoiler in small print to its owner, in their direct messages. Raises: DeliveryError."""
        shown = _MARKS.sub(r"\\\1", " ".join(thought.text.split())[:SPOILER_CHARS])
        await self.tell(thought.person, f"-# ||\N{THOUGHT BALLOON} {shown}||", thought.turn)

    async def _direct(self, person: str) -> discord.DMChannel:
        return await self._client.create_dm(discord.Object(int(person.rpartition(":")[2])))

    async def _in_place(self, perception: Perception, parts: Sequence[str]) -> int:
        """Answer where a command was given. Returns how many parts were accepted: none after fifteen minutes."""
        own = perception.extra.own
        if not own.get("token"):
            return 0
        ours: Any = {"id": own.get("application", ""), "type": 3, "token": own["token"]}
        hook = discord.Webhook.from_state(data=ours, state=self._client._connection)  # noqa: SLF001 - as the library does for its own
        for number, part in enumerate(parts):
            try:
                await hook.send(part, ephemeral=True, **_QUIET)
            except discord.HTTPException as error:
                log.info("not answered in place", extra={"key": perception.key, "error": unquoted(error)})
                return number
        return len(parts)


async def _post(channel: discord.abc.Messageable, part: str, once: str) -> None:
    """Post one part, repeating it under the same nonce while the outcome is unknown. Raises what an API call raises."""
    for rest_s in (*RESTS_S, None):
        try:
            await channel.send(part, nonce=nonce(str(uuid5(NAMESPACE_URL, once))), **_QUIET)
        except ConnectionError:
            if rest_s is None:
                raise
            await asyncio.sleep(rest_s)
        else:
            return
