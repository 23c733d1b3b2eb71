"""Intake: who may talk, which messages are owed, who asks too often, and changes that arrive before their message."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

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


MENTIONED, FOLLOWED = Config(runtime=RuntimeSettings(follow="mention")), Config(slack=SlackSettings(channels=("C1",)))
LISTENING = Config(runtime=RuntimeSettings(follow="listen"))
IN_GUILD = Config(discord=DiscordSettings(guilds=("G1",), channels=("C1",)))
ADMITTED = [
    # Direct messages, mentions and commands are owed, and only messages may be.
    *[(one, Config(), True, None) for one in (heard(DM), heard(kind=Kind.MENTION), heard(kind=Kind.COMMAND))],
    *[(heard(kind=kind), Config(), False, None) for kind in (Kind.REACTION, Kind.JOIN, Kind.EDIT, Kind.DELETE)],
    # Talk in a thread is owed where the soul follows it; elsewhere the store drops it, or keeps it in a listed channel.
    (heard(), Config(), True, Following.DROPPED),
    (heard(), FOLLOWED, True, Following.KEPT),
    # Nothing is owed if a message names someone else first, only mentions are answered, or it is in no thread.
    (heard(to_other=True), Config(), False, Following.DROPPED),
    (heard(), MENTIONED, False, Following.DROPPED),
    (heard(CHANNEL), Config(), False, Following.DROPPED),
    # With `listen`, everything is kept, and without a mention nothing is owed; a listed channel of Discord is kept, too.
    (heard(CHANNEL), LISTENING, False, Following.KEPT),
    (heard("discord:G1:C1:", person="discord:@me:U1"), IN_GUILD, False, Following.KEPT),
    (heard("discord:G1:C2:", person="discord:@me:U1"), IN_GUILD, False, Following.DROPPED),
]
"""What is heard, by which settings; whether a reply is owed, and what becomes of it where the soul does not follow."""


@pytest.mark.parametrize(("one", "config", "owes", "following"), ADMITTED)
def test_what_is_owed_and_what_is_kept(
    one: Perception, config: Config, *, owes: bool, following: Following | None
) -> None:
    """Whoever is heard is heard as they spoke; what differs is whether a reply is owed, and what is kept."""
    assert admit(one, config) == replace(one, owes=owes, following=following)


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


BUDGET = RateLimits(person_per_minute=3, person_per_day=10, conversation_per_hour=5)


WITHIN, OVER_NOW, SHUT = RateVerdict.WITHIN, RateVerdict.OVER_NOW, RateVerdict.SHUT
JUDGED: list[tuple[list[tuple[str, str, float]], list[RateVerdict]]] = [
    ([("ana", "c", float(at_s)) for at_s in range(5)] + [("ana", "c", 3.0 + HOUR_S)], [WITHIN] * 3 + [OVER_NOW, SHUT, WITHIN]),
    ([("ana", f"c{number}", number * 9000.0) for number in range(100)], [WITHIN] * 100),
    ([(f"p{number}", "c", float(number)) for number in range(7)], [WITHIN] * 5 + [OVER_NOW, SHUT]),
]  # fmt: skip
"""Who says something where at which second, and the verdicts."""


@pytest.mark.parametrize(("said", "verdicts"), JUDGED, ids=["in a minute", "slowly", "in one conversation"])
def test_one_too_many_shuts_for_an_hour(said: list[tuple[str, str, float]], verdicts: list[RateVerdict]) -> None:
    """The first message over a person's or a conversation's rate is marked as such; the rest of the hour is refused.

    Below every rate nobody is ever refused, however long they go on.
    """
    rates = Rates()

    assert [rates.judge(person, conversation, BUDGET, at_s) for person, conversation, at_s in said] == verdicts


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
