"""What the shipped prompt says: what a memory is for, what a portrait catches, how a turn looks, what it costs."""

import pytest
from msgspec.structs import replace

from claudius.cognition.output.rules import output_rules
from claudius.cognition.plan import EngineSettings, plan
from claudius.cognition.processes import process
from claudius.cognition.prompt.assembly import build_prompt, system_text
from claudius.cognition.prompt.snapshot import is_of_this_wording, with_files
from claudius.cognition.reply.parser import Parser
from claudius.cognition.steps import STEPS
from claudius.home import Home
from claudius.psyche_types import Felt
from claudius.recollection import STATE_DEFAULTS
from claudius.soul import SoulText
from lab.sample import model, person, recollection, soul

SETTINGS = EngineSettings(psyche=True, zone="UTC", wording=2)
SECTIONS = (
    "Persona", "Speaking Style", "Conversational Context", "Worldview", "Interests & Domains", "Working Patterns",
    "Most Potent Memories",
)  # fmt: skip
SYSTEM_CHARS = 9500


@pytest.fixture
def text(home: Home) -> SoulText:
    """Return the shipped soul."""
    return soul(home)


def test_memory_s3_the_kinds_are_named_and_a_memory_has_its_use(text: SoulText) -> None:
    """S3: reading.md names memory, psyche, peers and beliefs, and says in one sentence what a memory is for."""
    reading = text.text("reading.md")

    assert all(f"`{kind}`" in reading for kind in ("memory", "psyche", "peers", "beliefs", "user_model"))
    assert "Use a memory where it bears on the answer, say when it was, never recite it." in reading


def test_plain_no_instruction_stands_inside_its_own_tag(text: SoulText) -> None:
    """§2: a model copies a section that it is shown filled in, so an instruction names its tag and does not fill it."""
    assert not [name for name, step in text.steps.items() if f"</{name}>" in step.instruction]


def test_the_portrait_is_told_what_goes_where(text: SoulText) -> None:
    """Each of the seven sections is named, and constraints always count as next week."""
    update, check = text.steps["user_model_update"].instruction, text.steps["user_model_check"].instruction

    for section in SECTIONS:
        assert section in update
    assert all(constraint in check for constraint in ("health", "diet", "access", "dates"))
    assert "next week" in check


def test_the_example_is_one_whole_turn_that_is_read_as_meant(text: SoulText) -> None:
    """The worked example parses without a flag into the sections of a turn; the verb comes from the mood."""
    example = text.text("example.md")
    parser = Parser()
    parser.feed(example[example.index("<internal") :])
    parsed = parser.finish()

    assert parsed.winner
    assert parsed.winner.verb is None
    assert not parsed.flags
    assert [one.name for one in parsed.sections] == [
        "internal_monologue", "appraisal", "acts", "user_model_check", "user_model_update", "model_change_note",
    ]  # fmt: skip
    assert {one.name for one in parsed.sections} <= set(STEPS)


def test_the_exchanges_of_one_soul_are_not_shown_as_another_s(text: SoulText) -> None:
    """A soul.md with another first name leaves out the shipped exchanges; the worked example teaches form, and stays."""
    other = with_files(text, {"soul.md": "# Beata\n\nYou are Beata, a gardener."})
    edited = with_files(text, {"soul.md": text.text("soul.md") + "\nYou like rain."})

    assert "## How You Sound" not in system_text(other, SETTINGS)
    assert "## One Whole Turn" in system_text(other, SETTINGS)
    assert "## How You Sound" in system_text(edited, SETTINGS)


@pytest.mark.parametrize("name", ["example.md", "exchanges.md"])
def test_samples_are_never_said_to_anyone(text: SoulText, name: str) -> None:
    """A model that copies the example or an exchange word for word is not heard."""
    known = recollection()
    planned = plan(process("main_process"), known, SETTINGS)
    sample = max(text.text(name).replace(">", "\n").replace("<", "\n").split("\n"), key=len)

    assert output_rules(planned, known, text, SETTINGS).instructions.repeated_in(sample)


def test_a_rare_step_is_explained_where_it_is_asked(text: SoulText) -> None:
    """Steps that are seldom asked cost nothing in the turns that do not ask them."""
    known, asks = recollection(), ("assess_peer",)
    rare = text.steps["assess_peer"].instruction
    planned = plan(process("main_process"), known, SETTINGS)
    asked = replace(planned, asked=(*planned.asked, *asks), felt=Felt(asks=asks))

    assert rare not in build_prompt(planned, known, text, SETTINGS).tail
    assert rare in build_prompt(asked, known, text, SETTINGS).tail
    assert rare not in system_text(text, SETTINGS)


def test_an_empty_portrait_is_not_shown(text: SoulText) -> None:
    """Of someone of whom nothing is written there is no block; once there is, it stands in the first prompt."""
    new, known = recollection(speaker=person(turns_here=0)), recollection(speaker=person(model(1), turns_here=0))
    tails = [
        build_prompt(plan(process("main_process"), one, SETTINGS), one, text, SETTINGS).tail for one in (new, known)
    ]

    assert ["## User Model" in tail for tail in tails] == [False, True]


def test_the_system_part_keeps_its_size(text: SoulText) -> None:
    """The shipped system part, example and exchanges included, is shorter than the 9,860 characters it was, with the acts in it."""
    assert len(system_text(text, SETTINGS)) <= SYSTEM_CHARS


def test_no_mood_of_grief_is_needed_beyond_the_five() -> None:
    """The soul's moods stay five; the quiet one is the default, so a prompt in grief names none of them."""
    assert STATE_DEFAULTS["emotionalState"] == "neutral"


def test_a_turn_of_an_earlier_form_is_told_apart() -> None:
    """A kept turn that names no form is compared only if no code worded a part of its prompt."""
    assert is_of_this_wording(SETTINGS)
    assert is_of_this_wording(EngineSettings(psyche=False))
    assert not is_of_this_wording(EngineSettings(psyche=True))
