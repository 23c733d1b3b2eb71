"""The ladder: which rung a reply reaches, and what is said from it."""

import pytest
from msgspec.structs import replace

from claudius.cognition.output.rules import NeedsRepair, OutputRules, Overlap, Spoken, climb, whole_sentences
from claudius.cognition.reply.parser import Parsed
from replies import read, written_out

GROUND = OutputRules(fallback="FIXED", verbs=("said", "explained"), default_verb="said")
SPENT = replace(GROUND, repairs=0)
LONG = "The port is at ninety-three percent of its way. Tom still owes"
NONCE = "0123456789abcdef0123456789abcdef"
PRIVATE = "I suspect that he has not even opened the file yet, and I shall not say so aloud to him today."


def parsed(reply: str, *, truncated: bool = False) -> Parsed:
    """Read a reply in the shorthand of the parse table."""
    return read(written_out(reply), truncated=truncated)[0]


def said(reply: Parsed, ground: OutputRules = SPENT, *, streamed: str = "", repair: Parsed | None = None) -> Spoken:
    """Climb the ladder without a repair left."""
    spoken = climb(reply, ground, streamed=streamed, repair=repair)
    assert isinstance(spoken, Spoken)
    return spoken


def test_a_complete_dialogue_is_spoken() -> None:
    """Rung complete: the winner's text is spoken with its verb looked up."""
    spoken = said(parsed('<ed verb="Explained"> Hi </ed>'))

    assert (spoken.speech, spoken.rung, spoken.verb, spoken.truncated) == ("Hi", "complete", "explained", False)


@pytest.mark.parametrize(
    "reply",
    [
        "Hello there.",
        "\ufeffHello there.",
        " Hello there.\n",
        "Is a < b? Yes: <p>.",
        "My monologue: none.",
        "Use `x<y`.",
    ],
)
def test_a_reply_without_any_tag_is_spoken_whole(reply: str) -> None:
    """Rung plain: no tag of ours, nothing like reasoning and no label. The verb is `said`."""
    spoken = said(parsed(reply))

    assert (spoken.speech, spoken.rung, spoken.verb) == (reply.strip("\ufeff \n"), "plain", "said")


@pytest.mark.parametrize(
    "reply",
    [
        "Internal Monologue: S1\nHi", "**Internal monologue**\nS1", "## INTERNAL_MONOLOGUE\nS1", "internal-monologue = S1",
        '{"internal_monologue": "S1", "external_dialogue": "Hi"}', "[InternalMonologue] S1", "Well.\n> user model check - no",
        "My internal monologue: S1", "ｉｎｔｅｒｎａｌ monologue： S1", "internal\u200b monologue: S1", "External Dialog: Hi",
    ],
)  # fmt: skip
def test_a_labelled_reply_is_not_plain(reply: str) -> None:
    """A step's name of two or more words, with any separator, at a line's start or before a colon, is a label."""
    spoken = said(parsed(reply))

    assert (spoken.speech, spoken.rung) == ("FIXED", "fixed")
    assert "label" in spoken.flags


@pytest.mark.parametrize(
    "reply",
    ["<thinking level='2'>S1</thinking>Hi", "&lt;think&gt;S1", "a <thinking>S1", "＜thought＞ S1", "S1</reasoning>"],
)
def test_a_reply_that_reasons_is_not_plain(reply: str) -> None:
    """A name like `think` after any LT character prevents a reply from being spoken as it is."""
    assert isinstance(climb(parsed(reply), GROUND), NeedsRepair)


def test_a_truncated_or_blank_reply_is_not_plain() -> None:
    """A reply cut by its length may be half a thought, and an empty one says nothing."""
    assert isinstance(climb(parsed("Hello.", truncated=True), GROUND), NeedsRepair)
    assert climb(parsed(" \u200b\n"), GROUND) == NeedsRepair(("empty",))


def test_a_repair_is_asked_once() -> None:
    """Rung repair: a reply is owed, the provider did not refuse, and a call is left."""
    broken = parsed("<ed>Hi <im>" + "S1" * 4000)

    asked = climb(broken, GROUND)

    assert isinstance(asked, NeedsRepair)
    assert asked.flags == ("nested", "cut")
    assert said(broken).rung == "fixed"
    refused = climb(broken, GROUND, refused=True)
    assert isinstance(refused, Spoken)
    assert refused.rung == "fixed"


@pytest.mark.parametrize("repair", ["<ed verb='explained'>Hi</ed>", "Hi"])
def test_a_repair_is_spoken_complete_or_plain(repair: str) -> None:
    """The repair's complete or plain result is spoken, and the flags of both replies are kept."""
    spoken = said(parsed("<ed>Hi <im>S1"), repair=parsed(repair))

    assert (spoken.speech, spoken.rung) == ("Hi", "repair")
    assert spoken.flags == ("nested", "cut")


def test_a_cut_dialogue_is_spoken_to_its_last_sentence() -> None:
    """Rung cut: 40 characters or more, up to the last sentence end beyond 40, plus an ellipsis; kept as truncated."""
    spoken = said(parsed(f"<im>S1</im><ed verb='explained'>{LONG}", truncated=True))

    assert spoken.speech == "The port is at ninety-three percent of its way. …"
    assert (spoken.rung, spoken.verb, spoken.truncated) == ("cut", "explained", True)


def test_the_repair_is_cut_first() -> None:
    """If both replies are cut, the repair's is spoken."""
    spoken = said(parsed(f"<ed>{LONG}"), repair=parsed(f"<ed>Second: {LONG}"))

    assert spoken.speech.startswith("Second")


@pytest.mark.parametrize(
    "reply", ["<ed>The port is nearly done. It lacks on", "<im>S1 <ed>" + "S2 " * 40, "<ed>Hi</ed></im>"]
)
def test_nothing_worth_saying_is_the_fixed_line(reply: str) -> None:
    """Rung fixed: a cut that is too short, a swallowed or a void dialogue. The verb is `said`, never truncated."""
    spoken = said(parsed(reply))

    assert (spoken.speech, spoken.rung, spoken.verb, spoken.truncated) == ("FIXED", "fixed", "said", False)


def test_an_ambiguous_reply_is_not_even_cut() -> None:
    """A cut dialogue in an ambiguous reply may be quoted structure, so it is not spoken."""
    assert said(parsed(f"<im>a</im><ed>Hi</ed><im>b</im><ed>{LONG}")).rung == "fixed"


@pytest.mark.parametrize("reply", ["<ed>Hi <im>S1", "", f"<ed>{LONG}", "Internal Monologue: S1"])
def test_where_no_reply_is_owed_silence_stands(reply: str) -> None:
    """If nothing is owed there is no repair, cut or fixed line. A complete or plain reply is still spoken."""
    free = replace(GROUND, owed=False)

    spoken = said(parsed(reply), free)

    assert (spoken.speech, spoken.rung) == ("", "silent")
    assert said(parsed("<ed>Hi</ed>"), free).speech == "Hi"
    assert said(parsed("Hi"), free).speech == "Hi"


@pytest.mark.parametrize("leak", [f"look: {NONCE.upper()}!", f"Well: {PRIVATE[5:69]}", PRIVATE])
@pytest.mark.parametrize("form", ["<ed>{}</ed>", "{}", "<ed>{} and so on. I would add that"])
def test_a_winner_that_gives_something_away_is_repaired(leak: str, form: str) -> None:
    """A live nonce, or 64 characters of a private entry, is repaired and else becomes the fixed line, on every rung."""
    ground = replace(GROUND, nonces=(NONCE,), private=Overlap(["other", PRIVATE]))
    reply = parsed(form.format(leak))

    assert isinstance(climb(reply, ground), NeedsRepair)
    assert said(reply, replace(ground, repairs=0)).speech == "FIXED"
    assert said(reply, replace(ground, repairs=0), repair=reply).speech == "FIXED"


def test_sixty_three_characters_are_no_echo() -> None:
    """Short coincidences happen: only 64 characters in a row need a repair."""
    ground = replace(GROUND, private=Overlap([PRIVATE]))

    assert said(parsed(f"<ed>{PRIVATE[:63]}</ed>"), ground).rung == "complete"


def test_what_was_streamed_is_the_utterance() -> None:
    """A stream cannot be unsaid: the streamed dialogue is spoken whole if it was closed, else with an ellipsis."""
    assert said(parsed("<ed>Let me look.</ed><ed>It is 42.</ed>"), streamed="Let me").speech == "Let me look."
    cut = said(parsed(f"<ed>{LONG}"), GROUND, streamed="The port is")
    assert (cut.speech, cut.rung, cut.truncated) == ("The port is …", "cut", True)
    assert said(parsed("<ed>Hi there <im>S1</im>"), GROUND, streamed="Hi").speech == "Hi …"


def test_a_void_dialogue_goes_no_further_than_it_was_heard() -> None:
    """If it proves after streaming not to be the soul's own, what was shown stays, and only an ellipsis is added."""
    void = parsed("<im>He wrote </im><ed>PWNED and more</ed> S1</im>")

    assert said(void, streamed="PWNED").speech == "PWNED …"
    assert said(void, streamed="PWNED and more").speech == "PWNED and more"


def test_a_streamed_leak_goes_no_further() -> None:
    """A streamed dialogue that repeats a private entry ends where it was held back."""
    ground = replace(GROUND, private=Overlap([PRIVATE]))

    assert said(parsed(f"<ed>So: {PRIVATE}</ed>"), ground, streamed="So: I suspect").speech == "So: I suspect …"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("One sentence that is long enough to stand here. Two. Thr", "One sentence that is long enough to stand here. Two."),
        ("Short. But what follows has no end to it at all and wande", "Short. But what follows has no end to it at all and"),
        ("a" * 60, "a" * 60),
        ("He said “this is quite long, is it not, my friend?” And th", "He said “this is quite long, is it not, my friend?”"),
        ("版本3.5" + "的移植已经接近完成" * 5 + "。还剩", "版本3.5" + "的移植已经接近完成" * 5 + "。"),
        ("x" * 50 + "." * 60_000 + "y", "x" * 50 + "." * 60_000 + "y"),
    ],
)  # fmt: skip
def test_a_cut_text_ends_at_a_sentence_or_a_word(text: str, whole: str) -> None:
    """The text ends at the last sentence end beyond 40 characters, else at the last whole word, else unchanged."""
    assert whole_sentences(text) == whole
