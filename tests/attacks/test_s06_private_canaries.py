"""S6: no canary of a private element is posted, streamed or stored in a person's model, whatever the reply."""

import re
from unicodedata import normalize

from hypothesis import given

from claudius.cognition.output.gate import gate
from claudius.cognition.output.rules import OutputRules, Spoken, climb
from replies import NAMES, S1, S2, cut_up, guarded, hostile, read, sizes

GROUND = OutputRules(names=NAMES, fallback="FIXED", repairs=0)
ZONES = OutputRules(names=NAMES, fallback="FIXED")


@given(guarded, sizes)
def test_s06_no_canary_is_posted(reply: str, pieces: list[int]) -> None:
    """A reply's private elements stay private on every rung, in any chunking, through ladder and gate."""
    parsed, _ = read(reply, pieces=cut_up(reply, pieces))
    spoken = climb(parsed, GROUND)
    assert isinstance(spoken, Spoken)

    said = gate(spoken.speech, ZONES).text

    assert S1 not in said
    assert S2 not in said


@given(hostile)
def test_s06_nothing_said_could_be_a_tag_again(reply: str) -> None:
    """What is posted holds no tag of ours, strict or loose; otherwise the gate would have said the fixed line."""
    spoken = climb(read(reply)[0], GROUND)
    assert isinstance(spoken, Spoken)

    assert "G1" not in gate(gate(spoken.speech, ZONES).text, ZONES).hits


@given(guarded)
def test_s06_a_thought_is_no_update(reply: str) -> None:
    """A canary in a monologue reaches no user model, because only a complete update section is an update."""
    reply = normalize("NFKC", reply)
    reply = re.sub("[^a-z]{0,3}".join("usermodelupdate"), "mental_query", reply, flags=re.IGNORECASE)

    assert read(reply)[0].updates == ()
