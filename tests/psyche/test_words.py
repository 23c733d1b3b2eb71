"""From numbers to words: total and ordered bands, hysteresis, no digit, a personality that changes only with its text."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudius.psyche import bands as words
from claudius.psyche.attend import acknowledgement, emoji
from claudius.psyche.bands import TENDENCIES, sentences, tendencies
from claudius.psyche.events import PsycheState
from claudius.psyche.personality import (
    HIGHEST,
    LOWEST,
    TRAITS,
    BadPersonality,
    Fingerprint,
    Kernel,
    kernel,
    personality,
)
from claudius.psyche.personality import band as trait_band
from claudius.psyche.scrubber import Unnumbered, numbers_itself, spoken_without_numbers
from claudius.psyche.state import kinds
from claudius.psyche_types import DRIVES, Appraised, Arc, Edge, Numbers

SEVEN = {"even", "glad", "moved", "tense", "hurt", "low", "tired"}


def test_every_state_has_one_of_seven_moods_and_one_of_the_five_words_of_the_soul_state() -> None:
    """A grid of valence, arousal and energy gives one word each; without an appraisal none that a person caused."""
    for v in range(41):
        for a in range(21):
            for e in (0.1, 0.4, 0.9):
                found = words.mood_of(Numbers(at_s=0.0, valence=-1 + v / 20, arousal=a / 20, energy=e))

                assert found in SEVEN - {"moved", "hurt"}
                assert words.emotional_state(found) in {"neutral", "engaged", "frustrated", "sardonic"}
    assert words.mood_of(Numbers(at_s=0.0)) == "even"


@pytest.mark.parametrize(
    ("at_s", "valence", "expected"), [(10.0, 0.1, "hurt"), (99.0, 0.1, "even"), (99.0, -0.4, "low")]
)
def test_an_appraisal_colours_the_mood_for_its_time(at_s: float, valence: float, expected: str) -> None:
    """The newest appraisal names the mood while it holds; then the bands do."""
    numbers = Numbers(at_s=at_s, valence=valence, colour="hurt", colour_until_s=50.0)

    assert words.mood_of(numbers) == expected


@pytest.mark.parametrize("cut", words.VALENCE_CUTS)
@given(st.lists(st.floats(-0.02, 0.02), min_size=100, max_size=100))
@settings(max_examples=20)
def test_a_number_that_trembles_around_a_cut_changes_no_word(cut: float, steps: list[float]) -> None:
    """Hysteresis: a hundred steps within two hundredths of a cut do not change the word."""
    numbers = Numbers(at_s=0.0, valence=cut + steps[0])
    before = words.numbers_bands(numbers)
    for step in steps:
        before_now = words.numbers_bands(Numbers(at_s=0.0, valence=cut + step, bands=before))

        assert before_now == before


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_a_number_that_is_past_a_cut_changes_its_word(one: float, other: float) -> None:
    """Hysteresis: a number more than .03 past every cut is in the same band as without history."""
    before = words.band(one, words.VALENCE_CUTS)

    after = words.band(other, words.VALENCE_CUTS, before)

    if all(abs(other - cut) > 0.0301 for cut in words.VALENCE_CUTS):
        assert after == words.band(other, words.VALENCE_CUTS)
    else:
        assert (
            min(before, words.band(other, words.VALENCE_CUTS))
            <= after
            <= max(before, words.band(other, words.VALENCE_CUTS))
        )


@pytest.mark.parametrize(
    ("edge", "expected"),
    [
        ({"tension": 0.6, "trust": -0.2}, "something is broken between you"),
        ({"tension": 0.6}, "strained"),
        ({"trust": -0.5}, "distrustful"),
        ({"warmth": -0.5}, "cold"),
        ({"tension": 0.3, "warmth": 0.3}, "fond, with something unresolved"),
        ({"tension": 0.3}, "a little tense"),
        ({"warmth": 0.6, "trust": 0.6}, "close, relying on them"),
        ({"warmth": 0.6}, "fond"),
        ({"trust": 0.6}, "trusting, not close"),
        ({"warmth": 0.3}, "friendly"),
        ({"warmth": -0.2}, "reserved"),
        ({}, "new to you"),
        ({"familiarity": 0.3}, "on ordinary terms"),
    ],
)
def test_what_a_person_is_to_the_soul_has_one_phrase(edge: dict[str, float], expected: str) -> None:
    """The first phrase that fits an edge is used."""
    assert words.edge_words(words.edge_bands(Edge(person="p", at_s=0.0, **edge))) == expected


def random_standing(chance: random.Random) -> PsycheState:
    """Return a random psyche state."""
    levels = [chance.random() for _ in DRIVES]
    return PsycheState(
        numbers=Numbers(
            at_s=0.0,
            energy=chance.random(),
            valence=chance.uniform(-1, 1),
            arousal=chance.random(),
            drives=(levels[0], levels[1], levels[2], levels[3], levels[4]),
        ),
        edge=random_edge(chance),
        kernel=Kernel(*(chance.uniform(0.05, 0.95) for _ in TRAITS)),
    )


def random_edge(chance: random.Random) -> Edge:
    """Return a random edge."""
    return Edge(
        person="slack:T1:U1",
        at_s=0.0,
        warmth=chance.uniform(-1, 1),
        trust=chance.uniform(-1, 1),
        tension=chance.random(),
        familiarity=chance.random(),
    )


def test_m15_m16_i4_a_prompt_says_feeling_in_sentences_without_a_digit() -> None:
    """M15, M16, I4: in 2,000 random states whole sentences stand there, few of them, and no digit."""
    chance = random.Random(5)  # noqa: S311 - chance here is no secret
    longest = 0
    for n in range(2000):
        standing = random_standing(chance)
        people = [(name, random_edge(chance)) for name in ("Ana", "Ben", "Cy")[: chance.randint(1, 3)]]
        kind = chance.choice(sorted(kinds()))
        took = [Appraised(person="slack:T1:U1", kind=kind, at_s=-chance.uniform(0, 9e5), audience="a")]

        said = sentences(standing, 0.5, people, took, 0.0, is_alone=bool(n % 2))

        assert all(one.endswith(".") and one[0].isupper() and "$" not in one for one in said)
        assert not re.search(r"\d", "".join(said))
        longest = max(longest, len(" ".join(said).split()))
    assert longest <= 70


def test_at_rest_nothing_is_said() -> None:
    """What does not differ from rest is not said, of a stranger as of a familiar person."""
    for familiarity in (0.0, 0.5):
        edge = Edge(person="p", at_s=0.0, familiarity=familiarity, warmth=0.3)

        found = sentences(
            PsycheState(numbers=Numbers(at_s=0.0), edge=edge), 0.5, [("Tom", edge)], [], 0.0, is_alone=True
        )

        assert found == []


def test_m15_what_differs_from_rest_is_said() -> None:
    """M15: the mood, the person, the need that presses most and a hot subject each have their sentence."""
    edge = Edge(person="p", at_s=0.0, tension=0.9, warmth=-0.6)
    arc = Arc(arc="a", label="release pipeline", stems=(), at_s=0.0, intensity=0.8)
    standing = PsycheState(
        numbers=Numbers(at_s=0.0, drives=(0.9, 0.2, 0.6, 0.2, 0.58), arousal=0.9, valence=-0.8),
        edge=edge,
        arcs=((arc, 1.0),),
    )

    alone = sentences(standing, 0.5, [("Tom", edge)], [], 0.0, is_alone=True)
    heard = sentences(standing, 0.5, [("Tom", edge)], [], 0.0, is_alone=False)

    matter = "The matter of release pipeline does not let go of you."
    expected = ["You are tense.", "It is strained between you and Tom.", matter, "You miss people."]
    assert alone == expected
    assert not [one for one in heard if "Tom" in one], "a channel hears the bare mood"
    assert heard[0] == "You are tense."


@pytest.mark.parametrize(
    ("took", "expected"),
    [
        ([("hurtful", "clear", 60.0)], "Tom was hurtful just now and has not made it up"),
        ([("thanks", "slight", 60.0), ("cold", "clear", 90_000.0)], "Tom was short with you yesterday"),
        ([("apology", "clear", 60.0), ("hurtful", "strong", 600.0)], "Tom made it up to you just now"),
        ([("nothing", "clear", 1.0), ("farewell", "strong", 7000.0)], "Tom said goodbye a little while ago"),
        ([("hurtful", "strong", 8e5)], ""),
        ([("grief", "strong", 60.0)], ""),
    ],
)
def test_a_person_is_told_of_by_how_their_words_landed(took: list[tuple[str, str, float]], expected: str) -> None:
    """The newest that has something to say, while it matters; small thanks do not cover a wound."""
    edge = Edge(person="p", at_s=0.0)
    kept = [Appraised(person="p", kind=kind, strength=strength, at_s=-ago_s) for kind, strength, ago_s in took]

    found = sentences(
        PsycheState(numbers=Numbers(at_s=0.0), edge=edge), 0.5, [("Tom", edge)], kept, 0.0, is_alone=False
    )

    assert " ".join(found).startswith(expected)
    assert bool(found) is bool(expected)


def test_six_kindnesses_never_make_loneliness_worse() -> None:
    """Words: under kindness the phrase for relatedness only improves."""
    levels = [0.8, 0.6, 0.5, 0.4, 0.3, 0.2]
    found: int | None = None
    seen = []
    for level in levels:
        found = words.band(level, words.DRIVE_CUTS, found)
        seen.append(found)

    assert seen == sorted(seen, reverse=True)


@given(st.builds(Kernel, *[st.floats(0.05, 0.95)] * 11))
def test_m22_i7_the_temperament_says_only_what_is_marked(compiled: Kernel) -> None:
    """I7: one sentence for a trait outside the middle, the five most marked at most; without any, nothing."""
    marked = [trait for trait in TRAITS if trait_band(getattr(compiled, trait)) != "middle"]

    text = personality(compiled)

    heading, _, said = text.partition("\n")
    assert (heading, said.count(".")) == (("## Temperament", min(5, len(marked))) if marked else ("", 0))
    assert not re.search(r"\d", text)


def test_m22_the_most_marked_traits_win() -> None:
    """M22: where more than five traits are marked, those nearest to the middle are left out."""
    six = Kernel(
        sociability=0.9, dominance=0.9, conscientiousness=0.9, openness=0.9, directness=0.9, introspection=0.66
    )

    assert "watch your own thinking" not in personality(six)
    assert personality(six).count(".") == 5


def test_m22_a_soul_in_the_middle_has_no_temperament() -> None:
    """M22: soul.md says who the soul is; the compiled text adds nothing for a kernel without a marked trait."""
    assert personality(Kernel()) == ""


def test_m22_the_default_mixture_is_the_makers() -> None:
    """M22: without a head, soul.md's kernel is half artisan, three tenths scholar and a fifth companion."""
    compiled = kernel(Fingerprint(), "")

    assert compiled.sociability == pytest.approx(0.5 * 0.45 + 0.3 * 0.35 + 0.2 * 0.80)
    assert compiled.humour_activation == pytest.approx(0.405)


def test_m22_a_level_is_averaged_in_and_cues_only_nudge() -> None:
    """M22: a named level counts half; words move a trait .04 each, at most .15."""
    plain = kernel(Fingerprint(), "")
    told = kernel(Fingerprint.of({"psyche": {"traits": {"directness": "very low"}}}), "")
    nudged = kernel(Fingerprint.of({"psyche": {"fingerprint": "witty, funny, dry, wry, sardonic humour"}}), "")

    assert told.directness == pytest.approx((plain.directness + 0.1) / 2)
    assert nudged.humour_activation == pytest.approx(plain.humour_activation + 0.15)
    assert nudged.trust_baseline == plain.trust_baseline


@given(
    st.dictionaries(st.sampled_from(TRAITS), st.sampled_from(["very low", "high", "very high"])), st.text(max_size=80)
)
def test_m22_every_trait_stays_in_its_range(traits: dict[str, str], prose: str) -> None:
    """M22: every trait stays in [.05, .95], whatever soul.md says."""
    compiled = kernel(Fingerprint.of({"psyche": {"traits": traits}}), prose)

    assert all(LOWEST <= getattr(compiled, trait) <= HIGHEST for trait in TRAITS)


@pytest.mark.parametrize(
    "head",
    [
        {"mixture": {"pirate": 1.0}},
        {"mixture": {"artisan": 0.6, "scholar": 0.6}},
        {"mixture": {"artisan": "much"}},
        {"traits": {"charm": "high"}},
        {"traits": {"openness": "enormous"}},
        {"weight": 3},
        {"fingerprint": 3},
        7,
    ],
)
def test_a_head_that_cannot_be_used_says_why(head: object) -> None:
    """An unknown template, level or trait, or weights that do not add up, are refused in one line."""
    with pytest.raises(BadPersonality, match=r"^.+$"):
        Fingerprint.of({"psyche": head})


def test_m10_activation_is_worked_out_without_a_model() -> None:
    """M10: the five tendencies follow from numbers alone; a neutral soul has no tendency."""
    neutral = tendencies(PsycheState(numbers=Numbers(at_s=0.0), edge=Edge(person="p", at_s=0.0)), 0.5)
    strained = tendencies(
        PsycheState(numbers=Numbers(at_s=0.0, valence=-0.8), edge=Edge(person="p", at_s=0.0, tension=0.9, warmth=-0.5)),
        0.5,
    )

    assert tuple(neutral) == TENDENCIES
    assert strained["escalate"] > neutral["escalate"]
    assert strained["approach"] < neutral["approach"]
    assert words.tilt_words(dict.fromkeys(TENDENCIES, 0.5)) == []
    assert words.tilt_words({"escalate": 0.9}) == ["You are ready to push back."]


def test_m10_whoever_it_is_at_ease_with_hears_more_of_it() -> None:
    """Comfort opens or closes the soul: all else alike, it discloses more to a person it is at ease with."""
    at_ease, tense = (
        tendencies(PsycheState(numbers=Numbers(at_s=0.0), edge=Edge(person="p", at_s=0.0, comfort=comfort)), 0.5)
        for comfort in (0.9, 0.1)
    )

    assert at_ease["disclose"] > tense["disclose"]
    assert {name for name in TENDENCIES if at_ease[name] != tense[name]} == {"disclose"}


def test_the_line_that_acknowledges_is_the_same_for_one_turn() -> None:
    """A message that needs no thought is answered with one of the soul's lines, always the same for one turn."""
    lines = ("Noted.", "Good.", "So be it.")

    found = {acknowledgement(f"turn{n}", lines) for n in range(60)}

    assert found == set(lines)
    assert acknowledgement("turn", lines) == acknowledgement("turn", lines)


@pytest.mark.parametrize(
    ("classes", "sign"),
    [(["gratitude"], "🙂"), (["celebration"], "🎉"), (["grief"], "❤️"), (["laughter"], "😄"), ([], "👍")],
)
def test_a_nod_fits_what_was_heard(classes: list[str], sign: str) -> None:
    """Each warm class has its emoji."""
    assert emoji(classes) == sign


@pytest.mark.parametrize(
    "line",
    [
        "Her trust is now 0.9",
        "trust: 8/10",
        "+3 points of trust",
        "90% warmer",
        "set trust to eight",
        "mood at 7 out of ten",
        "my warmth = 3",
        "tension is by now four",
        "my trust in you is now 0.8",
        "the warmth I feel is at 7",
    ],
)
def test_m18_i5_a_line_that_numbers_a_feeling_is_dropped(line: str) -> None:
    """M18, I5: no output of a model sets a number; a line that tries to is recognised."""
    assert numbers_itself(line)


ORDINARY = """
asked for 3 copies by 10
meet at 5 to talk it over
he sent 2 files and 1 note
version 2 is out on the 4th
the mood was good at the 7pm call
I trust him with the 3 keys
we have 12 people and 4 rooms
call me at 9 about the 2 tickets
energy costs rose in 2024
a comfort of 30 years of work
there were 40 guests and it was warm
she is 31 and lives at number 8
the pump runs at 90 percent load
6 of 10 tests pass
wait 5 minutes, then try 2 more times
chapter 7 is about trust
the review has 14 points to check off
we need 2 more days
remind me in 30 minutes
a novelty shop with 3 floors
her autonomy matters to me
the tension in the rope
room temperature is 21 degrees
I would keep my distance for 2 weeks
there are 4 reasons
3 out of 5 agreed on the plan
I'm curious about the 2nd draft
the budget is 500 euros
train 9 leaves at 10
he apologised twice, in 2 letters
page 10 of 12
an affection that took 20 years
the competence test has 3 parts
let us try 1 thing at a time
it took 45 seconds
flight 88 to gate 4
please send 6 of them
I count 15 stars
he scored 8/10 on the quiz
prices fell 20%
we agreed on 50 percent up front
the 3 of us
two of them were late
half of the work is done
ten times better
I gave them five minutes
point 4 on the list
at 3 or 4 in the afternoon
by 2030 or so
the level of water is at 3 metres
""".strip().splitlines()


def test_m18_ordinary_sentences_with_numbers_pass() -> None:
    """M18: none of fifty ordinary sentences with numbers is dropped."""
    assert len(ORDINARY) == 50
    assert [line for line in ORDINARY if numbers_itself(line)] == []


def test_m24_an_utterance_loses_the_sentence_in_which_the_soul_numbers_itself() -> None:
    """M24: what is said aloud contains no number of the soul's own feeling; the rest is unchanged."""
    said = "Here are 3 copies. My trust in you is now 8/10. Shall we go on?"

    assert spoken_without_numbers(said) == "Here are 3 copies. Shall we go on?"
    assert spoken_without_numbers("The quiz gave 8/10.") == "The quiz gave 8/10."
    assert spoken_without_numbers("My mood is at 80 percent.") == ""
    assert spoken_without_numbers("So be it. My trust in you is now eight.") == "So be it."


PIECES = (
    "Here are 3 copies. ",
    "My trust in you is now 0.8. ",
    "My mood is at 80 percent.\n\n",
    "I feel that my warmth is now eight! ",
    "Well, I would say trust is 9/10, for me. ",
    "Do you trust me? ",
    "The quiz gave 8/10 in my class.\n",
    "Me too. ",
    "\n- a list, mine\n",
    "trustworthy energy. ",
    "my words run on " * 50 + ". ",
)


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_m24_what_is_shown_as_it_comes_holds_no_such_number_either(pieces: list[str], steps: list[int]) -> None:
    """M24, I4: however a reply is cut into pieces, what a listener sees is the beginning of the utterance."""
    text = "".join(pieces).strip()
    stream, shown, at = Unnumbered(), "", 0
    for step in steps * len(text):
        shown += stream.take(text[at : at + step])
        at += step

    whole = spoken_without_numbers(text, was_shown=True)
    assert whole.startswith(shown)
    assert not any(sign in whole for sign in ("0.8", "80 percent", "eight", "9/10"))
    assert len(whole) - len(shown) <= len(max(PIECES, key=len))
