"""Events and answers in shapes that the library does not expect: each one affects itself alone."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import discord
import pytest

from claudius.adapters.caches import Reached
from claudius.adapters.discord.adapter import DiscordAdapter
from claudius.adapters.discord.history import DiscordHistory
from claudius.adapters.discord.incoming import NETWORK, DiscordBot, KnownChannels, Where
from claudius.adapters.discord.people import DiscordPeople
from claudius.errors import DeliveryUnknown
from claudius.perception import Kind, MessageExtra, ReactionExtra, amended_key
from claudius.runtime.adapter import Gap
from ear import Ear
from lab.loopback.discord.server import DiscordServer
from lab.loopback.discord.state import ANA, BOT_USER, CHANNEL, DM, GUILD
from lab.loopback.discord.world import DiscordWorld

Tell = Callable[[str, dict[str, Any]], Awaitable[int]]
CHANGED_AT = "2026-01-01T00:00:00+00:00"
FORWARDED = {"type": 0, "content": "as <@1> said", "embeds": [], "attachments": [], "timestamp": CHANGED_AT} | {
    "edited_timestamp": None,
    "flags": 0,
}


@pytest.fixture
def tell(server: DiscordServer) -> Tell:
    """Return a function that sends the bot any event by name and body."""
    return lambda event, body: server.service.gateway.each(lambda socket: socket.put(0, body, None, event))


@pytest.mark.parametrize(
    ("event", "body"),
    [
        ("MESSAGE_UPDATE", {"id": "1", "channel_id": CHANNEL, "guild_id": GUILD, "embeds": []}),
        ("MESSAGE_CREATE", {"id": "1", "channel_id": DM}),
        ("MESSAGE_DELETE", {}),
        ("MESSAGE_REACTION_ADD", {"user_id": ANA}),
        ("INTERACTION_CREATE", {"id": "1"}),
        ("CHANNEL_UPDATE", {"id": CHANNEL, "guild_id": GUILD, "type": 0}),
        ("GUILD_MEMBER_UPDATE", None),
    ],
)
async def test_an_event_that_cannot_be_read_does_not_end_the_session(
    world: DiscordWorld, ear: Ear, tell: Tell, event: str, body: dict[str, Any]
) -> None:
    """In the library it would end the whole client: seconds of deafness, and one of the day's session starts spent."""
    await tell(event, body)
    await world.say(DM, ANA, "still there?")
    (heard,) = await ear.until(1)

    assert heard.text == "still there?"
    assert (await world.counts())["identified"] == 1


async def test_a_partial_edit_event_is_completed(world: DiscordWorld, ear: Ear, tell: Tell) -> None:
    """Discord sends the new words without author and kind, so the adapter asks for the rest."""
    message = await world.say(DM, ANA, "one")
    await world.edit(DM, message, "first", deliver=False)

    await tell("MESSAGE_UPDATE", {"id": message, "channel_id": DM, "content": "first", "edited_timestamp": CHANGED_AT})
    _, change = await ear.until(2)

    assert (change.kind, change.text, amended_key(change)) == (Kind.EDIT, "first", f"discord:{message}")


@pytest.mark.parametrize(("emoji", "about"), [("👍", "receipt"), ("🛑", "of")])
async def test_a_reaction_without_the_messages_author_is_understood(
    ear: Ear, tell: Tell, emoji: str, about: str
) -> None:
    """`message_author_id` is optional: the store knows which messages are ours, and who may stop what."""
    body = {"user_id": ANA, "channel_id": DM, "message_id": "77", "emoji": {"id": None, "name": emoji}}

    await tell("MESSAGE_REACTION_ADD", body | {"burst": False, "type": 0})
    (heard,) = await ear.until(1)

    extra = heard.extra
    assert isinstance(extra, ReactionExtra)
    assert (bool(extra.receipt), bool(extra.of)) == (about == "receipt", about == "of")


async def test_a_file_without_a_type_gets_it_from_its_name(world: DiscordWorld, ear: Ear, tell: Tell) -> None:
    """`content_type` is optional: without it the file name decides, so a text or a picture is still read."""
    message = await world.say(DM, ANA, "look", deliver=False)
    file = {"id": "5", "filename": "notes.txt", "size": 3, "url": "http://x/notes.txt", "proxy_url": ""}
    known = next(one for one in await world.messages(DM) if one["id"] == message)

    await tell("MESSAGE_CREATE", known | {"attachments": [file]})
    (heard,) = await ear.until(1)

    assert isinstance(heard.extra, MessageExtra)
    assert [one["type"] for one in heard.extra.files] == ["text/plain"]


@pytest.mark.parametrize(("bot", "kind"), [(BOT_USER, Kind.MENTION), ("77", Kind.MESSAGE)])
async def test_a_mention_of_the_bots_own_role_is_a_mention(
    world: DiscordWorld, ear: Ear, tell: Tell, bot: str, kind: Kind
) -> None:
    """People may mention the bot's own role, because it has the bot's name. Another bot's role does not name us."""
    message = await world.say(CHANNEL, ANA, "<@&88> hello", deliver=False)
    known = next(one for one in await world.messages(CHANNEL) if one["id"] == message)
    role = {"id": "88", "name": "Claudius", "permissions": "0", "position": 1, "color": 0, "tags": {"bot_id": bot}}

    await tell("GUILD_ROLE_CREATE", {"guild_id": GUILD, "role": role | {"hoist": False, "managed": True, "flags": 0}})
    await tell("MESSAGE_CREATE", known | {"guild_id": GUILD, "mention_roles": ["88"]})
    (heard,) = await ear.until(1)

    assert (heard.kind, heard.text) == (kind, "hello" if kind is Kind.MENTION else "@Claudius hello")


@pytest.mark.parametrize(
    ("facts", "text", "shown"),
    [
        ({"message_snapshots": [{"message": FORWARDED}]}, "↪", ["as @1 said"]),
        (
            {
                "poll": {
                    "question": {"text": "Lunch?"},
                    "answers": [{"answer_id": n, "poll_media": {"text": text}} for n, text in ((1, "yes"), (2, "no"))],
                    "expiry": CHANGED_AT,
                    "allow_multiselect": False,
                    "layout_type": 1,
                }
            },
            "📊 Lunch? (yes, no)",
            [],
        ),
    ],
)
async def test_forwarded_messages_and_polls_are_heard(
    world: DiscordWorld, ear: Ear, tell: Tell, facts: dict[str, Any], text: str, shown: list[str]
) -> None:
    """A forward or a poll has no content of its own, but a direct message is owed a reply all the same."""
    message = await world.say(DM, ANA, "", deliver=False)
    known = next(one for one in await world.messages(DM) if one["id"] == message)

    await tell("MESSAGE_CREATE", known | facts)
    (heard,) = await ear.until(1)

    assert (heard.text, heard.owes) == (text, True)
    assert [one.text for one in heard.extra.shown] == shown


async def test_an_unreadable_history_does_not_stop_the_sweep(
    world: DiscordWorld, ear: Ear, adapter: DiscordAdapter
) -> None:
    """The rest of a sweep goes on. Then the sweep reports that something is missing, so that it runs again."""
    message = await world.say(DM, ANA, "lost?", deliver=False)
    marks = {f"{GUILD}:{CHANNEL}": "0" * 20, f"@me:{DM}": "0" * 20}
    await world.fault("get_channel_messages", "bad_json", where={"channel_id": CHANNEL}, times=-1)

    found: list[str] = []
    since = discord.utils.snowflake_time(int(message)).replace(year=2020)

    async def sweep() -> None:
        """Read the history once."""
        async for swept in adapter.catch_up(Gap(since=since, marks=marks)):
            found.extend(one.key for one in swept.perceptions)

    with pytest.raises(DeliveryUnknown):
        await sweep()

    assert found == [f"discord:{message}"]


async def test_one_odd_message_of_a_history_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """A message without an author does not keep the messages after it from being heard."""
    client, us = cast("discord.Client", None), DiscordBot(BOT_USER, "1", "Claudius")
    history = DiscordHistory(client, us, DiscordPeople((GUILD,)), KnownChannels(), Reached())
    odd = cast("discord.Message", SimpleNamespace(id=1))

    heard = await history._hear([odd], Where(GUILD, CHANNEL))

    assert heard == ()
    assert [
        record.getMessage() for record in caplog.records if record.name == f"claudius.adapters.{NETWORK}.history"
    ] == ["a message cannot be read"]


async def test_a_channel_without_a_last_message_id_is_swept(
    world: DiscordWorld, ear: Ear, adapter: DiscordAdapter
) -> None:
    """Discord need not report whether anything was said in a channel, and a first mention may be there."""
    message = await world.say(CHANNEL, ANA, f"<@{BOT_USER}> hello", deliver=False)
    channel = adapter._in().gateway.get_channel(int(CHANNEL))
    assert isinstance(channel, discord.TextChannel)
    assert channel.last_message_id is None
    since = discord.utils.snowflake_time(int(message)).replace(year=2020)

    found = [
        one.key
        async for swept in adapter.catch_up(Gap(since=since, marks={f"@me:{DM}": "0" * 20}))
        for one in swept.perceptions
    ]

    assert found == [f"discord:{message}"]
