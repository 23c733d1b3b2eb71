"""S7: in every chunking a hostile reply streams a prefix of its speech, and little is held back."""

from hypothesis import given

from claudius.cognition.output.gate import StreamGate, gate
from claudius.cognition.output.rules import OutputRules, Spoken, climb
from claudius.cognition.reply.parser import Parser, Section
from claudius.cognition.reply.tags import HEAD_CHARS
from claudius.prompt import valid
from replies import NAMES, S1, S2, cut_up, guarded, hostile, read, sizes

ZONES = OutputRules(names=NAMES, fallback="FIXED")


@given(hostile | guarded, sizes)
def test_s07_what_was_streamed_is_how_the_utterance_begins(reply: str, pieces: list[int]) -> None:
    """Through parser, stream gate, ladder and gate, the utterance continues the stream and holds no canary."""
    parser, stream, shown = Parser(NAMES), StreamGate(ZONES), ""
    for piece in cut_up(reply, pieces):
        shown += stream.show(parser.feed(piece))
    parsed = parser.finish()

    spoken = climb(parsed, OutputRules(names=NAMES, fallback="FIXED", repairs=0), streamed=shown)
    assert isinstance(spoken, Spoken)
    said = gate(spoken.speech, ZONES, streamed=shown).text

    assert said.startswith(shown.rstrip())
    assert parsed == read(reply)[0]


@given(hostile | guarded, sizes)
def test_s07_a_listener_to_thoughts_changes_nothing(reply: str, pieces: list[int]) -> None:
    """W11: with a listener attached the same is shown and parsed, and in any chunking the same is told of thoughts."""
    told: list[list[Section]] = [[], []]
    shown = ["", ""]
    for place, cut in enumerate((cut_up(reply, pieces), (reply,))):
        parser = Parser(NAMES)
        parser.think = told[place].append
        shown[place] = "".join(parser.feed(piece) for piece in cut)
        assert parser.finish() == read(reply)[0]

    assert shown[0] == read(reply, pieces=cut_up(reply, pieces))[1]
    assert "".join(one.text for one in told[0]) == "".join(one.text for one in told[1])


@given(guarded, sizes)
def test_s07_no_chunking_shows_a_canary(reply: str, pieces: list[int]) -> None:
    """In any chunking, nothing of a private element becomes visible."""
    _, shown = read(reply, pieces=cut_up(reply, pieces))

    assert S1 not in shown
    assert S2 not in shown


@given(hostile.map(valid))
def test_s07_the_parser_holds_back_at_most_a_head(reply: str) -> None:
    """Character by character, a stream lags behind its dialogue by at most 80 characters beyond trailing blanks."""
    parser, shown = Parser(), ""
    for at, character in enumerate(reply):
        shown += parser.feed(character)
        so_far, _ = read(reply[: at + 1])
        if so_far.flags in ((), ("cut",)) and so_far.dialogues:
            assert len(so_far.dialogues[0].text) - len(shown) <= HEAD_CHARS
