"""Commands and buttons: registered, given, answered in time, followed up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import discord
import pytest
from discord import app_commands

from discord_ear import Ear
from lab.loopback.discord.state import ANA, BOT_USER, CHANNEL, DM, GUILD
from lab.loopback.discord.world import DiscordWorld

Listen = Callable[..., Awaitable[Ear]]


def teach(ear: Ear, answer: Callable[[discord.Interaction], Awaitable[None]]) -> None:
    """Have the client answer `/claudius forget who`."""
    group = app_commands.Group(name="claudius", description="Claudius")

    @group.command(name="forget", description="Forget somebody")
    async def forget(interaction: discord.Interaction, who: str) -> None:
        """Be the command."""
        interaction.extras["who"] = who
        await answer(interaction)

    ear.tree.add_command(group)


async def test_a_deferred_command_is_answered_later(listen: Listen, world: DiscordWorld) -> None:
    """The promise is shown as loading; the first followup keeps it, to the person alone if it was so promised."""
    ear = await listen()

    async def answer(interaction: discord.Interaction) -> None:
        """Answer the command."""
        await interaction.response.defer(ephemeral=True, thinking=True)
        await interaction.followup.send(f"Forgot {interaction.extras['who']}.")

    teach(ear, answer)
    await ear.tree.sync()
    interaction = await world.slash(CHANNEL, ANA, "claudius forget", {"who": "me"})
    (shown,) = await world.until_visible(1)

    kinds = [(entry.by, entry.kind) for entry in await world.trace()]
    assert kinds == [("person", "slash"), ("app", "defer"), ("app", "response")]
    assert (shown.text, shown.to, shown.reference) == ("Forgot me.", ANA, interaction)
    assert await world.messages(CHANNEL) == []


async def test_a_public_answer_stands_in_the_channel_and_is_our_own(listen: Listen, world: DiscordWorld) -> None:
    """An answer for all is a message of the bot's, echoed as one; it can be edited, and more can follow."""
    ear = await listen()

    async def answer(interaction: discord.Interaction) -> None:
        """Answer the command."""
        await interaction.response.send_message("One")
        await interaction.edit_original_response(content="One, better")
        await interaction.followup.send("Two")

    teach(ear, answer)
    await ear.tree.sync(guild=None)
    await world.slash(DM, ANA, "claudius forget", {"who": "x"})
    await world.until_visible(2)
    await world.until_heard()

    assert [message["content"] for message in await world.messages(DM)] == ["One, better", "Two"]
    assert {str(message.author.id) for message in ear.heard} == {BOT_USER}


async def test_an_answer_that_comes_too_late_fails(listen: Listen, world: DiscordWorld) -> None:
    """Without an answer within the deadline the person is told so, and the late one is refused with 10062."""
    ear = await listen()
    late: asyncio.Future[discord.HTTPException] = asyncio.get_running_loop().create_future()

    async def answer(interaction: discord.Interaction) -> None:
        """Answer the command."""
        async with asyncio.timeout(10):
            while (await world.trace())[-1].kind != "failed":
                await asyncio.sleep(0.005)
        with pytest.raises(discord.NotFound) as no:
            await interaction.response.defer()
        late.set_result(no.value)

    teach(ear, answer)
    await world.set(interaction_deadline_s=0.05)
    await ear.tree.sync()
    await world.slash(CHANNEL, ANA, "claudius forget", {"who": "x"})

    assert (await late).code == 10062
    assert await world.visible() == []


async def test_a_token_lives_a_quarter_of_an_hour_and_is_answered_once(listen: Listen, world: DiscordWorld) -> None:
    """A second first answer is 40060; after 15 minutes the token is worth nothing."""
    ear = await listen()
    codes: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()

    async def answer(interaction: discord.Interaction) -> None:
        """Answer the command."""
        await interaction.response.defer()
        again = discord.InteractionResponse(interaction)
        with pytest.raises(discord.HTTPException) as twice:
            await again.defer()
        await world.shift_clock(901)
        with pytest.raises(discord.HTTPException) as old:
            await interaction.followup.send("Too late")
        codes.set_result((twice.value.code, old.value.code))

    teach(ear, answer)
    await ear.tree.sync()
    await world.slash(CHANNEL, ANA, "claudius forget", {"who": "x"})

    assert await asyncio.wait_for(codes, 10) == (40060, 50027)


async def test_commands_are_registered_everywhere_or_in_a_guild(listen: Listen, world: DiscordWorld) -> None:
    """A sync puts all commands in place of the old; one that keeps its name keeps its id; no other can be given."""
    ear = await listen()

    async def answer(interaction: discord.Interaction) -> None:
        """Answer the command."""
        await interaction.response.defer()

    teach(ear, answer)
    (first,) = await ear.tree.sync()
    (second,) = await ear.tree.sync()
    ear.tree.copy_global_to(guild=discord.Object(int(GUILD)))
    await ear.tree.sync(guild=discord.Object(int(GUILD)))

    assert first.id == second.id
    assert [one["name"] for one in await world.commands()] == ["claudius"]
    assert [one["guild_id"] for one in await world.commands(GUILD)] == [GUILD]
    with pytest.raises(LookupError, match="no command 'sing'"):
        await world.slash(CHANNEL, ANA, "sing")
    with pytest.raises(LookupError, match="no part 'remember'"):
        await world.slash(CHANNEL, ANA, "claudius remember")


async def test_a_button_is_pressed(listen: Listen, world: DiscordWorld) -> None:
    """A press arrives with its message, which the answer may change; there is no press of what is not there."""
    ear = await listen()

    class Choice(discord.ui.View):
        """One button."""

        @discord.ui.button(label="Yes", custom_id="yes")
        async def yes(self, interaction: discord.Interaction, _: discord.ui.Button[discord.ui.View]) -> None:
            """Be pressed."""
            await interaction.response.edit_message(content="Yes it is", view=None)

    channel = ear.get_channel(int(CHANNEL))
    assert isinstance(channel, discord.TextChannel)
    sent = await channel.send("Shall I?", view=Choice())

    await world.click(CHANNEL, str(sent.id), ANA, "yes")
    await world.until_called("create_interaction_response")
    async with asyncio.timeout(10):
        while (await world.messages(CHANNEL))[0]["content"] != "Yes it is":
            await asyncio.sleep(0.005)

    with pytest.raises(LookupError, match="no button"):
        await world.click(CHANNEL, str(sent.id), ANA, "yes")
