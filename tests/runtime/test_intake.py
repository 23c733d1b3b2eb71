"""Intake: who may talk, which messages are owed, who asks too often, and changes that arrive before their message."""

from datetime import UTC, datetime
from typing import Any

import pytest

from claudius.config.schema import Config, DiscordSettings, RuntimeSettings, SlackSettings
from claudius.errors import OverBudget
from claudius.home import Home
from claudius.memory.inbox import HOUR_S, MOST_KNOWN, RateLimits, Rates, RateVerdict
from claudius.perception import Following, Kind, MoveExtra, Perception, Standing, private, shared
from claudius.providers.scripted import Scripted
from claudius.runtime.access import admit
from claudius.testing.alive import alive
from ear import echo

ANA = "slack:T1:U1"
THREAD, CHANNEL, DM = "slack:T1:C1:1.0", "slack:T1:C1:", "slack:T1:D1:"


def heard(conversation: str = THREAD, **changes: Any) -> Perception:
    """Return what a member of the workspace said."""
    values: dict[str, Any] = {
        "key": "k",
        "conversation": conversation,
        "audience": private(ANA) if conversation == DM else shared(conversation),
        "person": ANA,
        "name": "Ana",
        "text": "Hello",
        "at": datetime(2026, 1, 5, tzinfo=UTC),
        "position": "2.0",
    }
    return Perception(**(values | changes))


@pytest.mark.parametrize("standing", [Standing.GUEST, Standing.OUTSIDER, Standing.GONE])
@pytest.mark.parametrize("conversation", [THREAD, DM])
def test_only_members_are_heard(standing: Standing, conversation: str) -> None:
    """Guests, outsiders and deactivated people are ignored silently, in a DM and on mention."""
    assert admit(heard(conversation, standing=standing, kind=Kind.MENTION), Config()) is None


@pytest.mark.parametrize("one", [heard(DM), heard(kind=Kind.MENTION), heard(kind=Kind.COMMAND)])
def test_a_direct_message_a_mention_and_a_command_are_owed(one: Perception) -> None:
    """Direct messages, mentions and commands are accepted as owed."""
    assert admit(one, Config()) == one


def test_talk_in_a_thread_is_owed_where_the_soul_follows_it() -> None:
    """The store decides on acceptance: elsewhere such talk is dropped, or kept in a channel that is listened to."""
    settings = Config(slack=SlackSettings(channels=("C1",)))

    assert admit(heard(), Config()) == heard(following=Following.DROPPED)
    assert admit(heard(), settings) == heard(following=Following.KEPT)


@pytest.mark.parametrize(
    ("one", "follow"), [(heard(to_other=True), "thread"), (heard(), "mention"), (heard(CHANNEL), "thread")]
)
def test_talk_that_is_for_others_is_owed_nothing(one: Perception, follow: Any) -> None:
    """Nothing is owed if a message names someone else first, only mentions are answered, or it is in no thread."""
    admitted = admit(one, Config(runtime=RuntimeSettings(follow=follow)))

    assert admitted is not None
    assert (admitted.owes, admitted.following) == (False, Following.DROPPED)


def test_listening_keeps_what_it_is_not_asked() -> None:
    """With `listen`, everything is kept, and without a mention nothing is owed."""
    admitted = admit(heard(CHANNEL), Config(runtime=RuntimeSettings(follow="listen")))

    assert admitted is not None
    assert (admitted.owes, admitted.following) == (False, Following.KEPT)


def test_reactions_joins_and_edits_are_owed_nothing() -> None:
    """Only messages may be owed a reply."""
    for kind in (Kind.REACTION, Kind.JOIN, Kind.EDIT, Kind.DELETE):
        admitted = admit(heard(kind=kind), Config())
        assert admitted is not None
        assert not admitted.owes


GUILD_THREAD, DISCORD_DM = "discord:G1:C1:5", "discord:@me:D1:"


def on_discord(conversation: str, **changes: Any) -> Perception:
    """Return what a person said on Discord."""
    audience = private("discord:@me:U1") if conversation == DISCORD_DM else shared(conversation)
    return heard(conversation, person="discord:@me:U1", audience=audience, kind=Kind.MENTION, **changes)


@pytest.mark.parametrize(
    ("guilds", "is_heard"), [((), False), (("G2",), False), (("G1",), True), (("G2", "G1"), True), (("*",), True)]
)
def test_a_guild_is_heard_only_where_it_is_named(guilds: tuple[str, ...], *, is_heard: bool) -> None:
    """An empty list of guilds admits no one, in a channel or directly."""
    settings = Config(discord=DiscordSettings(guilds=guilds))

    assert bool(admit(on_discord(GUILD_THREAD), settings)) is is_heard
    assert bool(admit(on_discord(DISCORD_DM, extra={"guilds": ["G1", "G3"]}), settings)) is is_heard


@pytest.mark.parametrize("guilds", [("G1",), ("*",)])
def test_who_shares_no_guild_is_not_heard_directly(guilds: tuple[str, ...]) -> None:
    """Whatever the network says about a person, sharing no guild means that a direct message is refused."""
    settings = Config(discord=DiscordSettings(guilds=guilds))

    assert admit(on_discord(DISCORD_DM, extra={"guilds": []}), settings) is None
    assert admit(on_discord(DISCORD_DM), settings) is None
    assert admit(on_discord(DISCORD_DM, extra={"guilds": ["G1"]}, standing=Standing.OUTSIDER), settings) is None


def test_talk_in_a_listed_discord_channel_is_kept() -> None:
    """As on Slack, `discord.channels` covers threads by their channel."""
    settings = Config(discord=DiscordSettings(guilds=("G1",), channels=("C1",)))
    talk = heard("discord:G1:C1:", person="discord:@me:U1")

    found = admit(talk, settings)
    elsewhere = admit(heard("discord:G1:C2:", person="discord:@me:U1"), settings)

    assert found
    assert found.following is Following.KEPT
    assert elsewhere
    assert elsewhere.following is Following.DROPPED


BUDGET = RateLimits(person_per_minute=3, person_per_day=10, conversation_per_hour=5)


def test_one_too_many_in_a_minute_shuts_for_an_hour() -> None:
    """The first message over the rate is marked as such; after it, the person is refused until the hour is over."""
    rates = Rates()

    found = [rates.judge("ana", "c", BUDGET, second) for second in (0.0, 1.0, 2.0, 3.0, 4.0)]
    later = rates.judge("ana", "c", BUDGET, 3.0 + HOUR_S)

    assert found == [RateVerdict.WITHIN] * 3 + [RateVerdict.OVER_NOW, RateVerdict.SHUT]
    assert later is RateVerdict.WITHIN


def test_a_slow_talker_is_never_shut_out() -> None:
    """A person below every rate is never refused, however long they go on, within the daily limit."""
    rates = Rates()

    found = {rates.judge("ana", f"c{number}", BUDGET, number * 9000.0) for number in range(100)}

    assert found == {RateVerdict.WITHIN}


def test_a_conversation_has_its_own_rate() -> None:
    """The messages of many people in one conversation are limited too."""
    rates = Rates()

    found = [rates.judge(f"p{number}", "c", BUDGET, float(number)) for number in range(7)]

    assert found == [RateVerdict.WITHIN] * 5 + [RateVerdict.OVER_NOW, RateVerdict.SHUT]


def test_the_counts_are_bounded() -> None:
    """A crowd of strangers cannot fill the memory with counts."""
    rates = Rates()
    for number in range(MOST_KNOWN):
        rates.judge(f"p{number}", f"c{number}", BUDGET, 0.0)

    assert len(rates._counts) == MOST_KNOWN


async def test_the_first_over_the_rate_gets_the_one_apology(home: Home) -> None:
    """O1 under load: one apology without a model call, then not even a row."""
    voice = Scripted()
    async with alive(home, voice, settings={"CLAUDIUS_BUDGET_PERSON_PER_MINUTE": "2"}) as soul:
        for text in ("one", "two", "three"):
            await soul.network.hear(text)
        with pytest.raises(OverBudget):
            await soul.network.hear("four")
        await soul.network.hear("hello", person="ben")
        seen = await soul.network.until_visible(4)

    assert len(voice.requests) == 3
    assert sum("allowed to spend" in one.text for one in seen) == 1


def test_what_comes_again_is_counted_once() -> None:
    """A mention that arrives as two events, and again on redelivery, is one message with one verdict."""
    rates, limits = Rates(), RateLimits(person_per_minute=1)

    found = [rates.verdict(heard(key=key), limits) for key in ("k1", "k1", "k2")]

    assert found == [RateVerdict.WITHIN, RateVerdict.WITHIN, RateVerdict.OVER_NOW]


LIVE_ANA, LIVE_DM = "rehearsal:t:ana", "rehearsal:t:dm-ana:"


def event(key: str, text: str, position: str, kind: Kind, of: str = "") -> Perception:
    """Return an event as the network delivers it."""
    return Perception(
        key=key,
        conversation=LIVE_DM,
        audience=private(LIVE_ANA),
        person=LIVE_ANA,
        name="Ana",
        text=text,
        at=datetime.now(UTC),
        position=position,
        kind=kind,
        owes=not of,
        extra={"of": of} if of else {},
    )


@pytest.mark.parametrize(("changes", "answered"), [(("b", "a"), ["re b"]), (("",), []), (("", "a"), [])])
async def test_a_change_that_came_before_its_message_is_in_force(
    home: Home, changes: tuple[str, ...], answered: list[str]
) -> None:
    """The newest words are thought about, and a deleted message is answered by no one."""
    async with alive(home, Scripted(default=echo)) as soul:
        accept = soul.network._accept
        assert accept is not None
        for text in changes:
            assert not await accept(event(f"c{text}", text, f"1.{text}", Kind.EDIT if text else Kind.DELETE, "m"))
        assert await accept(event("m", "the old words", "1", Kind.MESSAGE))
        await soul.idle()

    assert [one.text for one in soul.network.visible] == answered


@pytest.mark.parametrize(
    ("kind", "is_our_own", "is_kept"), [(Kind.LEAVE, True, False), (Kind.JOIN, True, True), (Kind.LEAVE, False, True)]
)
async def test_only_our_own_leaving_ends_how_we_take_part(
    home: Home,
    kind: Kind,
    is_our_own: bool,  # noqa: FBT001 - pytest hands it over
    is_kept: bool,  # noqa: FBT001 - pytest hands it over
) -> None:
    """What was said with `/ensoul` outlasts our coming, and others' going."""
    channel = "rehearsal:t:square"
    async with alive(home, Scripted(default=echo)) as soul:
        modes, accept = soul.server._modes, soul.network._accept
        assert accept is not None
        await modes.participate(channel, "on", LIVE_ANA)
        await accept(
            heard(f"{channel}:", person=LIVE_ANA, kind=kind, owes=False, extra=MoveExtra(is_our_own=is_our_own))
        )

        assert (modes.mode(channel), bool(modes.said_by(channel))) == ("on" if is_kept else None, is_kept)
