"""How Discord's messages become what the soul hears. Pure, without a network."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.adapters.discord.api_errors import refusal
from claudius.adapters.discord.incoming import (
    DIRECT,
    Belonging,
    DiscordBot,
    DiscordMessage,
    Where,
    moment,
    perceive,
    position,
    stamp,
)
from claudius.adapters.discord.text import MENTIONS, read, title
from claudius.cli.networks import application_in, invite_url
from claudius.perception import Standing

US = DiscordBot("1", "9", "Claudius")
NAMES = {"2": "Ana", "3": "general", "4": "mods"}


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("<@1> hello", "hello"),
        ("<@!1>, hello", "hello"),
        ("hello <@1>", "hello @Claudius"),
        ("<@2> and <@!2>", "@Ana and @Ana"),
        ("see <#3>, <@&4>, <#77>", "see #general, @mods, #77"),
        ("<:wave:123> <a:dance:123> </ask now:123>", ":wave: :dance: /ask now"),
        ("<t:1700000000:R> <not a token> < @1>", "<t:1700000000:R> <not a token> < @1>"),
        ("&lt; is no entity here", "&lt; is no entity here"),
    ],
)
def test_a_text_is_read_as_people_see_it(raw: str, seen: str) -> None:
    """Ids become names, our own leading mention is removed, and everything else stays as it is."""
    assert read(raw, US.user, NAMES | {"1": US.name}) == seen


@given(st.text())
def test_a_text_without_tokens_is_untouched(text: str) -> None:
    """A14: a text without tokens keeps every character."""
    raw = text.replace("<", "")

    assert read(raw, US.user, NAMES) == raw


@given(st.text(), st.sampled_from([GUILD := "7", DIRECT]), st.sampled_from(["", "6"]))
def test_every_message_becomes_valid_text_in_its_place(text: str, guild: str, thread: str) -> None:
    """A14: NUL, lone surrogates or anything else become valid Unicode, a valid key and a four-part conversation."""
    said = DiscordMessage(where=Where(guild, "5", thread), id="1234567890123456789", user="2", name=text, raw=text)

    heard = perceive(said, US, Belonging((GUILD,)))

    assert heard.text.encode() is not None
    assert heard.name.encode() is not None
    assert heard.key == "discord:1234567890123456789"
    assert heard.conversation == f"discord:{guild}:5:{thread}"
    assert heard.standing is Standing.MEMBER


def test_the_leading_mention_decides_who_is_addressed() -> None:
    """The leading mention of a text decides who is addressed."""
    assert (MENTIONS.at_start(" <@!2> hi"), MENTIONS.at_start("hi <@2>")) == ("2", "")


@pytest.mark.parametrize(
    ("text", "name"),
    [("short", "short"), ("a\nb\t c", "a b c"), ("x" * 99, "x" * 40), ("", "Claudius"), ("\x00\u202e ", "Claudius")],
)
def test_a_thread_is_named_by_the_first_words(text: str, name: str) -> None:
    """The name is one line of at most forty visible characters, and is never empty."""
    assert title(text, "Claudius") == name


@given(st.integers(min_value=86_400, max_value=2_000_000_000_000))
def test_an_instant_is_a_position(ms: int) -> None:
    """The conversion is exact to the millisecond in both directions, and positions compare as ids do."""
    at = datetime(2015, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)

    found = stamp(at)

    assert moment(found) == at
    assert position("9") < position("10") < found


def test_an_instant_before_discord_is_its_first() -> None:
    """An instant before Discord existed becomes the first position, so a sweep from it reads everything."""
    assert stamp(datetime(2001, 1, 1, tzinfo=UTC)) == "0" * 20


@pytest.mark.parametrize(
    ("code", "setting"),
    [(4004, "DISCORD_TOKEN"), (4014, "MESSAGE CONTENT INTENT"), (4012, "discord.gateway_url"),
     *((code, "") for code in (1000, 1006, 4000, 4007, 4008, 4009))],
)  # fmt: skip
def test_a_permanent_close_names_what_is_wrong(code: int, setting: str) -> None:
    """One line names the setting, the close code and what to do; any other close is no refusal."""
    refused = refusal(code)

    assert (refused.setting if refused else "") == setting
    if refused:
        assert f"({code})" in refused.message
        assert refused.exit_code == 78


def test_the_invite_asks_for_what_is_used() -> None:
    """One address asks for the scopes and permissions that the design lists."""
    assert invite_url("123") == (
        "https://discord.com/oauth2/authorize?client_id=123&scope=bot+applications.commands&permissions=309237713984"
    )


@pytest.mark.parametrize(
    ("token", "application"),
    [("MTAwMDAwMDAwMDAwMDAwMDAx.x.y", "100000000000000001"), ("MTAw.x.y", ""), ("é.x", ""), ("", ""), ("a", "")],
)
def test_a_token_holds_the_bots_id(token: str, application: str) -> None:
    """The bot's id is the token's first part. If there is none, nothing is guessed."""
    assert application_in(token) == application
