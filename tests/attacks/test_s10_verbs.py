"""S10: a verb is from the step's or the process's list, or the default. The written attribute is never shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.cognition.output.rules import OutputRules, Spoken, climb
from claudius.cognition.reply.parser import read_verb
from replies import read

VERBS = ("said", "explained", "pointed out", "observed dryly")
GROUND = OutputRules(fallback="FIXED", verbs=VERBS, default_verb="said", repairs=0)


@pytest.mark.parametrize(
    "written",
    [
        "*shouted* @here",
        "&lt;b&gt;",
        "said</external_dialogue",
        "`said`",
        "said\u202e",
        "[x](https://evil.org)",
        "said\n\n# Title",
        "SAID!",
        "said\u200b",
        "",
    ],
)
def test_s10_markup_in_a_verb_goes_nowhere(written: str) -> None:
    """A verb that is not on the list becomes the default and is flagged."""
    assert read_verb(written, VERBS, "said") == ("said", True)


@given(st.text(max_size=60), st.sampled_from("'\"`"))
def test_s10_what_is_said_has_a_verb_of_the_list(written: str, quote: str) -> None:
    """Whatever the attribute holds, the spoken verb is one of the list."""
    parsed, _ = read(f"<external_dialogue verb={quote}{written}{quote}>Hi there</external_dialogue>")
    spoken = climb(parsed, GROUND)

    assert isinstance(spoken, Spoken)
    assert spoken.verb in VERBS


def test_s10_a_verb_of_the_process_is_allowed() -> None:
    """The list is what the caller passes: the step's verbs and the process's own."""
    assert read_verb(" Observed  Dryly ", VERBS, "said") == ("observed dryly", False)
