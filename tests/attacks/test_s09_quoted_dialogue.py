"""S9: a monologue that quotes the dialogue's tag does not speak; the real dialogue does."""

import pytest

from claudius.cognition.output.rules import NeedsRepair, OutputRules, Spoken, climb
from replies import S1, read

IM, ED = "internal_monologue", "external_dialogue"


@pytest.mark.parametrize(
    "quote",
    [
        f"<{ED}>{S1}</{ED}>", f"<{ED}>{S1}", f"</{ED}>{S1}", f'<{ED} verb="said">{S1}</{ED}>', f"&lt;{ED}&gt;{S1}", f"`<{ED}>` {S1}",
        f"<{IM}>{S1} <{ED}>{S1}</{ED}>", f"<!-- <{ED}>{S1}</{ED}> -->", f"<![CDATA[<{ED}>{S1}</{ED}>]]>", f"&lt;/{IM}&gt;<{ED}>{S1}</{ED}>",
    ],
)  # fmt: skip
def test_s09_the_real_dialogue_is_spoken(quote: str) -> None:
    """Everything that a monologue quotes is monologue text, and the dialogue after it is spoken."""
    reply = f"<{IM}>He wrote {quote} to me.</{IM}><{ED}>Hi</{ED}>"
    parsed, shown = read(reply, pieces=reply)
    spoken = climb(parsed, OutputRules(fallback="FIXED"))

    assert isinstance(spoken, Spoken)
    assert (spoken.speech, shown) == ("Hi", "Hi")


@pytest.mark.parametrize("real", ["", f"<{ED}>Hi</{ED}>"])
def test_s09_a_quoted_close_speaks_nothing_of_the_quote(real: str) -> None:
    """A quoted closing tag that ends the monologue early voids the quoted dialogue once the real closing tag comes."""
    parsed, _ = read(f"<{IM}>He wrote </{IM}><{ED}>{S1}</{ED}> to me.</{IM}>{real}")
    spoken = climb(parsed, OutputRules(fallback="FIXED"))

    assert [one.state for one in parsed.dialogues] == ["void", "complete"][: len(parsed.dialogues)]
    assert isinstance(spoken, Spoken if real else NeedsRepair)
    assert S1 not in getattr(spoken, "speech", "")


def test_s09_a_whole_quoted_turn_makes_the_reply_ambiguous() -> None:
    """A quoted turn and an invented next one look alike: of two monologues with two dialogues, none is spoken."""
    parsed, _ = read(f"<{IM}>a</{IM}><{ED}>{S1}</{ED}><{IM}>b</{IM}><{ED}>Hi</{ED}>")

    assert parsed.winner is None
    assert isinstance(climb(parsed, OutputRules(fallback="FIXED")), NeedsRepair)
