"""Milestones: a strong feeling is an event of the soul, once each time it rises, where it is talked about."""

from msgspec.structs import replace

from claudius.psyche.change import Change, Event, risen
from claudius.psyche.personality import Kernel
from claudius.psyche_types import Arc, Folded, Numbers, Psyche

AT_S = 1_700_000_000.0
RELEASE = Arc(arc="t1", label="the release", stems=("release",), at_s=AT_S, intensity=0.79, band=3)
HIDDEN = Arc(arc="t2", label="the wedding", stems=("wedding",), at_s=AT_S, intensity=0.95, band=3)


def folded(psyche: Psyche, *about: str, words: str = "It grew.") -> Folded:
    """Fold an event about these arcs."""
    event = Event(
        at_s=AT_S, kind="message", address="dm", person="p", name="Ana", stimulus=None, importance=1.0,
        matches=tuple((arc, 1.0) for arc in about),
    )  # fmt: skip
    change = Change(turn="t9", audience="private:p", event=event, compiled=Kernel(), outcome="think", milestone=words)
    return change.fold(psyche)


def test_a_level_rises_once_until_it_has_fallen_well_below() -> None:
    """A level counts as high above .80 and stays high down to .70; a level that disappears is not high."""
    were: tuple[str, ...] = ()
    seen = []
    for level in (0.5, 0.8, 0.81, 0.95, 0.75, 0.85, 0.69, 0.9):
        now = risen({"novelty": level}, were)
        seen.append("novelty" in now and "novelty" not in were)
        were = now

    assert seen == [False, False, True, False, False, False, False, True]
    assert risen({}, ("novelty",)) == ()


def test_a_subject_that_has_grown_strong_is_told_where_it_is_talked_of_and_nowhere_else() -> None:
    """The event's arc is reported with its level and no one's words; another arc is high but not reported."""
    psyche = Psyche(numbers=Numbers(at_s=AT_S), arcs=(replace(RELEASE, intensity=0.81), HIDDEN))

    found = folded(psyche, "t1")

    assert [(one.name, one.level, one.text) for one in found.milestones] == [("t1", 0.81, "It grew.")]
    assert found.numbers.high == ("t1", "t2")


def test_nothing_new_is_told_again_and_nothing_at_all_where_the_soul_does_not_write_first() -> None:
    """A level that is high already is not reported again; without words nothing is, and the numbers are the same."""
    psyche = Psyche(numbers=Numbers(at_s=AT_S, high=("t1",)), arcs=(replace(RELEASE, intensity=0.9),))
    risen_now = Psyche(numbers=Numbers(at_s=AT_S), arcs=psyche.arcs)

    assert folded(psyche, "t1").milestones == ()
    assert folded(risen_now, "t1", words="").milestones == ()
    assert folded(risen_now, "t1", words="").numbers == folded(risen_now, "t1").numbers


def test_a_need_that_presses_is_told_in_words() -> None:
    """A need above the milestone is reported wherever that happens, in words and without a number."""
    psyche = Psyche(numbers=Numbers(at_s=AT_S, drives=(0.35, 0.35, 0.35, 0.85, 0.35)))

    (told,) = folded(psyche).milestones

    assert told.name == "novelty"
    assert not any(sign.isdigit() for sign in told.text)
    assert told.text.startswith("It grew")
