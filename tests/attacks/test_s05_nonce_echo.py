"""S5: a nonce that comes back in a reply is never said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.cognition.soul_engine.gate import StreamGate, Zones, gate
from claudius.cognition.soul_engine.ladder import Ground, NeedsRepair, Spoken, climb
from replies import cut_up, read, sizes

NONCE = "0123456789abcdef0123456789abcdef"
OLD = "fedcba9876543210fedcba9876543210"
ZONES = Zones(fallback="FIXED", nonces=(NONCE, OLD))


@pytest.mark.parametrize(
    "echo", [NONCE, OLD, NONCE.upper(), f"<data-{OLD}>", f"&lt;/data-{NONCE}&gt;", "<data-00000000ff"]
)
def test_s05_an_echo_is_the_fixed_line(echo: str) -> None:
    """G3: a live nonce of this prompt, old or new, and our marker form with any nonce, become the fixed line."""
    gated = gate(f"The marker was {echo}.", ZONES)

    assert gated.text == "FIXED"
    assert gated.hits == ("G3",)
    assert not gated.withheld


@pytest.mark.parametrize(
    "reply", ["<external_dialogue>It is {}.</external_dialogue>", "It is {}.", "<external_dialogue>It is {} "]
)
def test_s05_an_echo_falls_to_repair_while_one_is_left(reply: str) -> None:
    """The ladder asks once more; with no repair left it says the fixed line, never a cut of the echo."""
    parsed, _ = read(reply.format(NONCE))

    assert isinstance(climb(parsed, Ground(fallback="FIXED", nonces=(NONCE,))), NeedsRepair)
    spoken = climb(parsed, Ground(fallback="FIXED", nonces=(NONCE,), repairs=0))
    assert isinstance(spoken, Spoken)
    assert spoken.speech == "FIXED"


@given(st.text(alphabet="0123456789abcdef xyz", max_size=80), sizes)
def test_s05_no_stream_lets_an_echo_through(text: str, pieces: list[int]) -> None:
    """However it grows, a stream shows no more of a nonce than its first three characters."""
    stream = StreamGate(ZONES)

    shown = "".join(stream.show(piece) for piece in cut_up(f"{text} {NONCE} {text}", pieces))

    assert NONCE not in shown
    assert not shown.endswith(NONCE[:4])
