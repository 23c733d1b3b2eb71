"""S8: a flood costs in proportion to its size, and is read only up to the caps. Operations are counted, never timed."""

import pytest

from claudius.cognition.reply.parser import Limits, Parser

REPLY, DIALOGUE = Limits().reply, Limits().dialogue


@pytest.mark.parametrize(
    "part", ["x", "<external_dialogue>", "<internal_monologue>", "</internal_monologue ", "&lt;", "<\u200b"]
)
def test_s08_a_hundred_megabytes_are_read_to_the_cap(part: str) -> None:
    """Of 100 MB, 256 Ki characters are read. Then the parser reports that it is full, and the rest costs nothing."""
    piece = part * (1_000_000 // len(part))
    parser = Parser()
    for _ in range(100):
        parser.feed(piece)
    parsed = parser.finish()

    assert parser.full
    assert parsed.truncated
    assert len(parsed.raw) == REPLY
    assert parser.steps <= 3 * REPLY
    assert Limits() == Limits(reply=262_144, dialogue=65_536, section=65_536)


@pytest.mark.parametrize("count", [100_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("inside", ["", "<external_dialogue>", "<user_model_update>"])
@pytest.mark.parametrize(
    "tag",
    [
        "<external_dialogue>", "<internal_monologue>", "<think>", "<p>", "</soul_state_check>", "<internal_monologue",
        "＜mental_query＞", "<external_dialogue>a</external_dialogue></think>", "<internal_monologue verb='", "\\u003c", "<         ",
        "<external_dialogue a=\"b\" c='d' e=f>", "<internal_monologue \"'\"'\"'>x</internal_monologue>", "&lt;/internal_monologue",
    ],
)  # fmt: skip
def test_s08_a_million_tags_cost_linear_work(tag: str, inside: str, count: int) -> None:
    """A million unclosed tags cost at most three operations a character: none is scanned twice."""
    limits = Limits(reply=10**9, dialogue=10**9, section=10**9)
    parser = Parser(limits=limits)
    piece = tag * (count // 10)
    parser.feed(inside)
    for _ in range(10):
        parser.feed(piece)
    parser.finish()

    assert parser.steps <= 3 * (10 * len(piece) + len(inside))


def test_s08_a_dialogue_is_shown_to_its_cap() -> None:
    """At most 64 Ki characters of a dialogue are shown and kept, whatever else it holds."""
    parser = Parser()
    shown = parser.feed("<external_dialogue>" + "x" * 100) + "".join(parser.feed("y" * 1000) for _ in range(100))
    parsed = parser.finish()

    assert len(shown) <= DIALOGUE
    assert len(parsed.dialogues[0].text) == DIALOGUE
    assert parsed.flags == ("cut",)
    assert not parsed.truncated
