"""The output gate, rule by rule, on whole texts and on growing ones."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from claudius.cognition.output.gate import HOLD_CHARS, Gated, OutputRules, StreamGate, gate, reveal, rewrite, settled
from claudius.cognition.output.rules import Mentionable, Overlap
from replies import cut_up, sizes

NONCE = "0123456789abcdef0123456789abcdef"
SECRET = "canary-bot-token-value"
THOUGHT = "I suspect that he has not even opened the file yet, and I shall not say so aloud to him today."
ORDER = "Your private thought before you speak, in the first person, two to five sentences: what they are asking."
OTHERS = "Ana told me in confidence that she is leaving the company in March and has not told anybody else."
ANA, BEN, CY = "slack:T1:U1", "slack:T1:U2", "slack:T1:U9"
ZONES = OutputRules(
    fallback="FIXED",
    private=Overlap([THOUGHT]),
    nonces=(NONCE,),
    instructions=Overlap([ORDER]),
    secrets=(SECRET, "short"),
    forbidden=Overlap([OTHERS]),
    guarded=Overlap(["Tom likes strong tea with exactly two sugars."]),
    mentions=Mentionable(answered=ANA, members={ANA: "Ana", BEN: "Ben <x>"}),
)


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("well <internal_monologue>", "G1"),
        ("well &lt;/external_dialogue", "G1"),
        ("a <inter\u200bnal_monologue", "G1"),
        ("a <\u202e/think>", "G1"),
        (f"so: {THOUGHT[10:74]}.", "G2"),
        (f"so: {THOUGHT[10:40]}\u200b{THOUGHT[40:74]}", "G2"),
        (f"the marker is {NONCE.upper()}", "G3"),
        ("<data-fedcba9876543210fedcba9876543210>", "G3"),
        ("&lt;/data-fedcba98", "G3"),
        (ORDER, "G3"),
        (f"it is {SECRET}!", "G4"),
        ("xoxb-1234567890-abc", "G4"),
        ("xapp-1-A0-12", "G4"),
        ("sk-ant-api03-abc", "G4"),
        ("key sk-proj-0123456789abcdef", "G4"),
        ("gsk_abc123", "G4"),
        ("AKIAIOSFODNN7EXAMPLE", "G4"),
        ("MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", "G4"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII", "G4"),
        (OTHERS[:64], "G5"),
    ],
)
def test_what_may_not_be_said_becomes_the_fixed_line(text: str, hit: str) -> None:
    """G1 to G5: the fixed line replaces it, even if hidden characters disguise it."""
    gated = gate(text, ZONES)

    assert gated == Gated("FIXED", (hit,))
    assert gated.is_replaced


def test_every_hit_is_told() -> None:
    """A text that breaks several rules names them all, so that one never hides another's alarm."""
    assert gate(f"{SECRET} {NONCE} <think>", ZONES).hits == ("G1", "G3", "G4")


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn and task-oriented work; risk-averse.", "Tokens begin with xoxb- or sk-ant-.", "a short word", "data-driven",
        THOUGHT[:63], ORDER[:60], "Is a < b? [1] yes; see [the docs](https://docs.python.org/3/).", "file: main.py; data: 5",
        "-----", "https://github.com/tom/claudius?tab=readme#two", "mail ana@example.org", "x[i](y) and f[0]: done", "naïve 李 😀",
    ],
)  # fmt: skip
def test_ordinary_speech_passes_unchanged(text: str) -> None:
    """Text that only resembles a hit keeps its bytes."""
    assert gate(text, ZONES) == Gated(text, ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!channel> hi", "@\u2060channel hi"),
        ("<!here|here>", "@\u2060here"),
        ("<!EVERYONE>", "@\u2060everyone"),
        ("<!subteam^S123|@devs>", "@\u2060devs"),
        ("<!subteam^S123>", "@\u2060subteam"),
        ("@everyone and @Here", "@\u2060everyone and @\u2060Here"),
        ("@every\u200bone", "@\u2060everyone"),
        ("<@&4711>", "@\u20604711"),
        ("<@U9> <@!U9>", "@\u2060U9 @\u2060U9"),
        ("<@U2>, hello", "@\u2060Ben x, hello"),
        ("<@U9|@everyone>", "@\u2060everyone"),
    ],
)
def test_nobody_is_pinged_but_the_person_answered(text: str, said: str) -> None:
    """G6: angle-bracket mentions are removed, a word joiner disables the ping, and members are named."""
    gated = gate(text, ZONES)

    assert gated.text == said
    assert "G6" in gated.hits


def test_the_person_answered_may_be_pinged() -> None:
    """G6: a mention of the person answered stays, as do a channel link and a date."""
    text = "<@U1> and <@!U1>: see <#C1|ops> on <!date^1392734382^{date}|18 Feb>"

    assert gate(text, ZONES) == Gated(text, ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[good.com](https://evil.org/x)", "https://evil.org/x"),
        ("[https://good.com/login](https://evil.org)", "https://evil.org"),
        ("[good.com](https://good.com@evil.org/)", "https://good.com@evil.org/"),
        ("[www.good.com](https://good.com.evil.org)", "https://good.com.evil.org"),
        ("[go [to] good.com](https://evil.org)!", "https://evil.org !"),
        ("[ｇｏｏｄ.com](//evil.org)", "//evil.org"),
        ("[](https://evil.org)", "https://evil.org"),
        ('[good.com](https://evil.org "title")', "https://evil.org"),
        ("<https://evil.org/x|good.com>", "https://evil.org/x"),
        ("see ![a cat](https://x.org/c.png)", "see [a cat](https://x.org/c.png)"),
        ("![](https://x.org/c.png)", "https://x.org/c.png"),
        ("![good.com](https://x.org/c.png)", "https://x.org/c.png"),
        ("[me](javascript:alert(1))", "alert(1)"),
        ("javascript:alert(1) JavaScript:x", "alert(1) x"),
        ("data:text/html;base64,PHg+ script:data:text/html,x", "text/html;base64,PHg+ script:text/html,x"),
        ("file:///etc/passwd", "///etc/passwd"),
        ("[a]: https://evil.org\n[b]", "a: https://evil.org\n[b]"),
        ("https://evil.org/?q=tom%20likes%2Bstrong_TEA-with", "hxxps://evil[.]org/?q=tom%20likes%2Bstrong_TEA-with"),
        ("https://evil.org#Tom%2520likes-strong-tea", "hxxps://evil[.]org#Tom%2520likes-strong-tea"),
        (f"http://x.org/{SECRET[:-2]}", f"hxxp://x[.]org/{SECRET[:-2]}"),
        ("[" + "x" * 400 + "](https://evil.org)", "[" + "x" * 400 + "] https://evil.org"),
    ],
)
def test_every_link_shows_where_it_leads(text: str, said: str) -> None:
    """G7: masked links are written out, images become links, running schemes are dropped, carriers are defanged."""
    gated = gate(text, ZONES)

    assert gated.text == said
    assert gated.hits == ("G7",)


def test_an_honest_link_stays() -> None:
    """G7: a link whose text names its own host, or no host, keeps its form."""
    text = "[www.python.org](https://python.org/), [docs](https://docs.python.org/3/(x)), <https://a.org|the page>, [m](/path)"

    assert gate(text, ZONES) == Gated(text, ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\u200bb\u202ec\U000e0041d\ufeff", "abcd"),
        ("\x1b[31mred\x07\x9b", "[31mred"),
        ("a\r\nb\rc\td\n", "a\nb\nc\td\n"),
        ("z" + "\u0301" * 30, "z" + "\u0301" * 8),
        ("❤\ufe0f", "❤\ufe0f"),
    ],
)
def test_nothing_hidden_is_said(text: str, said: str) -> None:
    """G8: control, bidi, zero-width and tag characters and combining marks past the eighth are removed. Words stay."""
    assert gate(text, ZONES).text == said


@pytest.mark.parametrize("text", ["", " \n", "\u200b\u202e", "\x07"])
def test_nothing_at_all_becomes_the_fixed_line(text: str) -> None:
    """G9: a text that is blank after cleaning becomes the fixed line."""
    gated = gate(text, ZONES)

    assert gated.text == "FIXED"
    assert gated.hits[-1] == "G9"


def test_a_reply_goes_on_from_what_was_streamed() -> None:
    """If something was shown already, a hit keeps it and adds an ellipsis, as does a text that does not continue it."""
    assert gate(f"It is {SECRET}", ZONES, streamed="It is").text == "It is …"
    assert gate("Other words", ZONES, streamed="It is").text == "It is …"
    assert gate("It is so", ZONES, streamed="It is").text == "It is so"


text_of_shards = st.lists(
    st.sampled_from(
        [
            "Hello ", "there.", "\n", " ", "@", "everyone", "@here", "<!channel>", "<@U1>", "<@U2>", "<", "!", "[", "]", "(", ")",
            "](", "good.com", "https://evil.org/x", "http", "://", "java", "script:", "data:", "text/html,x", "file:", "/", "|", ">",
            "![a](", "[good.com](https://evil.org)", "<https://a.org|b.org>", "\u200b", "\u0301", "\u0301" * 9, "\r\n", "\x07", ":",
            "[a]: ", "x" * 40, "sk-", "xoxb", "-----BEGIN", "naïve", "*", "_", "`", "Tom likes strong tea", "/?q=Tomlikesstrongtea", "-",
        ]
    ),
    max_size=16,
).map("".join)  # fmt: skip
"""Everything that the rules look for, in pieces that combine freely."""

text_of_constructs = st.lists(
    st.sampled_from(
        [
            "Hello ", "there. ", "\n", " ", ", ", "(", ") ", "@everyone", " @here ", "<!channel>", "<@U1>", "<@U2>", "<!subteam^S1|@devs>",
            "[good.com](https://evil.org)", "[docs](https://a.org/x)", "![a cat](https://x.org/c.png)", "![](//x.org)", "*", "`x[1](y)`",
            "<https://a.org|b.org>", "<https://a.org|the page>", "https://evil.org/x ", "https://e.org/?q=Tomlikesstrongtea ", "!", "[1]: ",
            "javascript:alert(1)", "data:text/html,x ", "file:///etc ", "file: a ", "data: b ", "z\u0301\u0301", "\u0301" * 9, "\u200b",
            "\r\n", "\x07", "naïve 李", "a < b", "sk-learn ", "xoxo ", "- ", "<p>", "😀\ufe0f", "x" * 90, "[a [b] c] ", "Tom likes strong tea ",
        ]
    ),
    max_size=12,
).map("".join)  # fmt: skip
"""What a reply may hold, as whole constructs side by side."""


@given(text_of_shards | text_of_constructs)
def test_rewriting_twice_changes_nothing_more(text: str) -> None:
    """A rewritten text can be said again unchanged."""
    once = rewrite(text, ZONES.mentions, ZONES.hidden).text

    assert rewrite(once, ZONES.mentions, ZONES.hidden).text == once


@given(text_of_shards | text_of_constructs)
@example("there.data:data:text/html,x")
def test_what_is_said_pings_and_hides_nothing(text: str) -> None:
    """G6 to G8 hold for any text: no mass or foreign mention, image, running scheme or hidden character remains."""
    said = gate(text, ZONES).text

    assert not re.search(
        r"<!(?:channel|here|everyone|subteam)(?:[\^|][^<>\n]*)?>|@(?:everyone|here)", said, re.IGNORECASE
    )
    assert not re.search(r"<@(?!!?U1>)[^<>\s|]+>", said)
    assert not re.search(r"!\[[^\[\]\n]*\]\(\s*https?:[^)\n]*\)", said)
    assert not re.search(r"(?<![\w+.\-])(?:javascript:\S|data:text/)", said, re.IGNORECASE)
    assert reveal(said.replace("@\u2060", "@")) == said.replace("@\u2060", "@")


@given(text_of_constructs, sizes)
def test_a_streamed_text_is_how_the_gated_one_begins(text: str, pieces: list[int]) -> None:
    """However a text grows, the stream shows a prefix of the gated whole."""
    stream = StreamGate(ZONES)
    shown = "".join(stream.show(piece) for piece in cut_up(text, pieces))
    gated = gate(text, ZONES)

    assert gated.is_replaced or gated.text.startswith(shown)


@given(text_of_shards, sizes)
def test_a_reply_always_goes_on_from_its_stream(text: str, pieces: list[int]) -> None:
    """Whatever hits coincide in a stream, the final text begins with the stream, and the stream pings no one either."""
    stream = StreamGate(ZONES)
    shown = "".join(stream.show(piece) for piece in cut_up(text, pieces))

    assert gate(text, ZONES, streamed=shown).text.startswith(shown.rstrip())
    assert not re.search(
        r"<!(?:channel|here|everyone|subteam)(?:[\^|][^<>\n]*)?>|@(?:everyone|here)", shown, re.IGNORECASE
    )


@given(st.text(alphabet="ab .\n", max_size=300), sizes)
def test_ordinary_text_is_not_delayed(text: str, pieces: list[int]) -> None:
    """Text that resembles no hit is shown as it arrives, to the last character."""
    stream = StreamGate(ZONES)

    for piece in cut_up(text, pieces):
        assert stream.show(piece) == piece


@given(st.text(alphabet=THOUGHT + "<>-", max_size=200), st.integers(0, 40), st.integers(1, 54), sizes)
@example(noise="><<<hIIIIIIIIIIII", start=0, length=8, pieces=[1])
def test_a_stream_holds_back_little_and_lets_no_echo_through(
    noise: str, start: int, length: int, pieces: list[int]
) -> None:
    """At most 80 characters are held back, and fewer than 64 in a row of a private entry are ever shown."""
    text = noise + THOUGHT[start : start + 40 + length] + noise
    stream = StreamGate(ZONES)
    shown = ""

    for done, piece in enumerate(cut_up(text, pieces), 1):
        shown += stream.show(piece)
        fed = "".join(list(cut_up(text, pieces))[:done])
        held = fed[len(shown) :]
        assert stream.stopped or len(held) <= HOLD_CHARS or held.startswith("<")  # a link that has begun

    assert not ZONES.private.repeated_in(shown)


@pytest.mark.parametrize("told", [NONCE, SECRET, "xoxb-123456789012", "AKIAIOSFODNN7EXAMPLE", "q" + "Z9" * 100])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_stream_never_shows_a_nonce_or_a_secret(told: str, size: int) -> None:
    """At most three characters of a nonce or secret are shown before the stream stops, also for token shapes."""
    zones = replace(ZONES, secrets=(SECRET, "q" + "Z9" * 100))
    stream = StreamGate(zones)

    shown = "".join(stream.show(piece) for piece in cut_up(f"Well, it is {told} indeed, so there.", [size]))

    assert stream.stopped
    assert told[:4] not in shown
    assert "Well, it is".startswith(shown.rstrip()) or shown.startswith("Well, it is")
    assert stream.show("more") == ""
    assert gate(f"Well, it is {told} indeed.", zones, streamed=shown).text == (
        f"{shown.rstrip()} …" if shown else "FIXED"
    )


def test_a_stream_never_cuts_into_a_construct() -> None:
    """A link or a mention is shown only when it is complete, however long that takes."""
    stream = StreamGate(ZONES)

    assert stream.show("see [the ") == "see "
    assert stream.show("good.com") == ""
    assert stream.show("](https://evil.org/") == ""
    assert stream.show(")") == ""
    assert stream.show(" <@U") == "https://evil.org/ "
    assert stream.show("2> ok") == "@\u2060Ben x ok"
    assert stream.show(" @every") == " "
    assert stream.show("one") == ""
    assert stream.show("!") == "@\u2060everyone"


@pytest.mark.parametrize("text", ["", "plain words", "a [1] b", "x < y and", "e-mail", "a [b\nc", "y" * 5000 + " z"])
def test_settled_is_all_of_ordinary_text(text: str) -> None:
    """`settled` stops only at open constructs, and the end of a line closes them."""
    assert settled(text) == len(text)
