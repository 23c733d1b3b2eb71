"""The laws of the numbers: bounds, closed-form time, polarity, the reference run, replay. No model, no clock."""

import random
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from claudius.psyche import change as subjects
from claudius.psyche.bands import numbers_bands
from claudius.psyche.change import BORN, Change, Event, feel
from claudius.psyche.personality import Kernel
from claudius.psyche.state import (
    DAY_S,
    DRIVE_BASE,
    HOUR_S,
    SENSITIVITY,
    Axes,
    Stimulus,
    advance,
    advance_edge,
    apply,
    apply_appraisal,
    apply_edge,
    drifted,
    effects,
    push,
    stranger,
)
from claudius.psyche_types import DRIVES, Appraisal, Arc, Edge, Folded, Numbers, Psyche

KERNEL = Kernel()
FRIENDLY = Axes(0.7, 0.4, 0.7, 0.6, 0.4)
INSULT = Axes(-0.8, -0.4, -0.8, -0.5, -0.3)
AMENDS = Axes(0.6, 0.4, 0.5, 0.6, 0.5)
VIOLATION = Axes(-0.3, -0.6, -0.2, -0.6, -1.0)

unit = st.floats(0, 1)
signed = st.floats(-1, 1)
axes = st.builds(Axes, signed, signed, signed, signed, signed)
stimuli = st.builds(Stimulus, axes=axes, tone=signed, novelty=st.none() | unit, load=unit)
kernels = st.builds(Kernel, *[st.floats(0.05, 0.95)] * 11)


def stimulus(of: Axes, novelty: float = 0.2, load: float = 0.0) -> Stimulus:
    """Return an event's numbers as classification would."""
    return Stimulus(axes=of, tone=(of.affectionate + of.supportive) / 2, novelty=novelty, load=load)


class History:
    """A soul and one other person, event by event."""

    def __init__(self) -> None:
        self.at_s = 0.0
        self.numbers = Numbers(at_s=0.0)
        self.edge = stranger("ana", 0.0, KERNEL)

    def hear(self, of: Axes, novelty: float, after_s: float, load: float = 0.0) -> None:
        """Apply an event, some time after the last."""
        self.idle(after_s)
        heard = stimulus(of, novelty, load)
        self.numbers = apply(self.numbers, heard, KERNEL)
        self.edge = apply_edge(self.edge, heard, KERNEL)

    def idle(self, for_s: float) -> None:
        """Advance time."""
        self.at_s += for_s
        self.numbers = advance(self.numbers, self.at_s)
        self.edge = advance_edge(self.edge, self.at_s, KERNEL)

    def stands(self, **expected: float) -> None:
        """Compare with the contract, to a hundredth."""
        found = {
            "valence": self.numbers.valence,
            "arousal": self.numbers.arousal,
            "energy": self.numbers.energy,
            "warmth": self.edge.warmth,
            "trust": self.edge.trust,
            "tension": self.edge.tension,
            **dict(zip(DRIVES, self.numbers.drives, strict=True)),
        }
        assert {name: found[name] for name in expected} == pytest.approx(expected, abs=0.01)


def test_m4_m5_m7_m8_the_reference_run_comes_out_as_the_contract_says() -> None:
    """M4, M5, M7, M8: drives, mood, edges and energy follow the reference run of the contract."""
    run = History()
    for _ in range(6):
        run.hear(FRIENDLY, 0.2, 180)
    run.stands(valence=0.66, arousal=0.48, relatedness=0.12, warmth=0.35, trust=0.20)
    run.idle(8 * HOUR_S)
    run.stands(valence=0.24)
    run.hear(INSULT, 0.3, 360)
    run.stands(valence=-0.20, trust=0.12, tension=0.15)
    run.hear(INSULT, 0.1, 180)
    run.stands(valence=-0.46, tension=0.28)
    run.idle(HOUR_S)
    run.hear(AMENDS, 0.1, 0)
    run.stands(valence=-0.12, tension=0.26)
    run.idle(DAY_S)
    run.stands(valence=0.10)
    run.idle(30 * DAY_S)
    run.stands(tension=0.0, warmth=0.11)
    run.hear(VIOLATION, 0.2, 0)
    run.stands(trust=-0.12, autonomy=0.51)


def test_m7_a_month_of_friendliness_and_a_bad_quarter_of_an_hour() -> None:
    """M7, M8: sixty kindnesses half a day apart give warmth .71; twenty insults in twenty minutes give tension .67."""
    kind, cruel = History(), History()
    for _ in range(60):
        kind.hear(FRIENDLY, 0.2, 12 * HOUR_S)
    for _ in range(20):
        cruel.hear(INSULT, 0.1, 60)

    kind.stands(warmth=0.71)
    cruel.stands(valence=-0.85, tension=0.67)


def test_m8_a_busy_hour_tires_and_mild_kindness_makes_no_bliss() -> None:
    """M8: after five hundred mild kindnesses in an hour, valence is .44 and energy .30; rest restores the energy."""
    run = History()
    for _ in range(500):
        run.hear(Axes(0.1, 0.05, 0.15, 0.2, 0.0), 0.2, 7.2, 0.05)
    run.stands(valence=0.44, energy=0.30)

    run.idle(30 * HOUR_S)

    run.stands(energy=0.85)


def test_every_number_stays_in_its_range() -> None:
    """Bounds: no sequence of events takes a number out of its range (20,000 events, 40 kernels)."""
    chance = random.Random(7)  # noqa: S311 - chance here is no secret
    for _ in range(40):
        kernel = Kernel(*(chance.uniform(0.05, 0.95) for _ in range(11)))
        numbers, edge, at_s = Numbers(at_s=0.0), stranger("ana", 0.0, kernel), 0.0
        for _ in range(500):
            at_s += chance.choice((0.0, 1.0, chance.uniform(0, 90 * DAY_S)))
            of = Axes(*(chance.choice((-1.0, 1.0, chance.uniform(-1, 1))) for _ in range(5)))
            heard = Stimulus(axes=of, tone=chance.uniform(-1, 1), novelty=chance.random(), load=chance.random())
            numbers = apply(advance(numbers, at_s), heard, kernel)
            edge = apply_edge(advance_edge(edge, at_s, kernel), heard, kernel)

            assert -1 <= numbers.valence <= 1
            assert 0 < numbers.energy <= 1
            assert min(*numbers.drives, numbers.arousal) >= 0
            assert max(*numbers.drives, numbers.arousal) <= 1
            assert max(abs(edge.warmth), abs(edge.trust)) <= 1
            assert min(edge.tension, edge.comfort, edge.familiarity, edge.volatility) >= 0
            assert max(edge.tension, edge.comfort, edge.familiarity, edge.volatility) <= 1


def _apart(one: object, other: object) -> float:
    found: list[float] = []
    for mine, theirs in zip(astuple(one), astuple(other), strict=True):
        pairs = zip(mine, theirs, strict=True) if isinstance(mine, tuple) else [(mine, theirs)]
        found += [abs(a - b) for a, b in pairs if isinstance(a, float)]
    return max(found)


def test_i1_any_split_of_time_gives_the_same_numbers() -> None:
    """I1: time has a closed form: 300 random histories, each cut into 31 pieces, end at most 1e-12 apart."""
    chance = random.Random(11)  # noqa: S311 - chance here is no secret
    for _ in range(300):
        whole = pieces = Numbers(at_s=0.0)
        edge = cut = stranger("ana", 0.0, KERNEL)
        moments = sorted(chance.uniform(0, 90 * DAY_S) for _ in range(4))
        happened = {
            at_s: stimulus(Axes(*(chance.uniform(-1, 1) for _ in range(5))), chance.random()) for at_s in moments
        }
        for at_s in sorted((*moments, *(chance.uniform(0, 90 * DAY_S) for _ in range(27)), 91 * DAY_S)):
            pieces, cut = advance(pieces, at_s), advance_edge(cut, at_s, KERNEL)
            if heard := happened.get(at_s):
                pieces, cut = apply(pieces, heard, KERNEL), apply_edge(cut, heard, KERNEL)
                whole = apply(advance(whole, at_s), heard, KERNEL)
                edge = apply_edge(advance_edge(edge, at_s, KERNEL), heard, KERNEL)

        assert _apart(advance(whole, 91 * DAY_S), pieces) <= 1e-12
        assert _apart(advance_edge(edge, 91 * DAY_S, KERNEL), cut) <= 1e-12


def test_i1_ten_idle_years_are_one_step() -> None:
    """I1: ten idle years in one step equal ten years of hours, and the step costs the same."""
    start = apply(Numbers(at_s=0.0), stimulus(INSULT), KERNEL)
    hourly = start
    for hour in range(1, 10 * 365 * 24 + 1):
        hourly = advance(hourly, hour * HOUR_S)

    once = advance(start, 10 * 365 * DAY_S)

    assert _apart(once, hourly) <= 1e-12


def test_absence_leads_into_the_highest_bands_and_company_back() -> None:
    """Two weeks alone: company is missed and nothing is new; ten friendly new messages still both."""
    met = apply(Numbers(at_s=DAY_S), Stimulus(company=1.0), KERNEL)
    alone = advance(met, 15 * DAY_S)
    again = alone
    for _ in range(10):
        again = apply(again, Stimulus(axes=Axes(affectionate=0.3), novelty=0.7, company=1.0), KERNEL)
    untouched = advance(Numbers(at_s=DAY_S), 15 * DAY_S)

    assert numbers_bands(alone)[3] == numbers_bands(alone)[6] == 3
    assert max(numbers_bands(again)[3], numbers_bands(again)[6]) < 2
    assert untouched.drives == Numbers(at_s=0.0).drives


@given(stimuli, st.floats(0, 1), kernels)
def test_a_stronger_event_never_changes_less(heard: Stimulus, share: float, kernel: Kernel) -> None:
    """Polarity: from the base, a weaker form of the same event moves drives, warmth, trust and tension no further."""
    weak = replace(
        heard, axes=Axes(*(axis * share for axis in heard.axes)), tone=heard.tone * share, novelty=None, load=0.0
    )
    heard = replace(heard, novelty=None, load=0.0)
    numbers, edge = Numbers(at_s=0.0), stranger("ana", 0.0, kernel)

    strong_edge, weak_edge = apply_edge(edge, heard, kernel), apply_edge(edge, weak, kernel)

    for axis in ("warmth", "trust", "tension"):
        moved = abs(getattr(strong_edge, axis) - getattr(edge, axis))
        assert moved >= abs(getattr(weak_edge, axis) - getattr(edge, axis)) - 1e-12
    for now, less, was in zip(
        apply(numbers, heard, kernel).drives, apply(numbers, weak, kernel).drives, numbers.drives, strict=True
    ):
        assert abs(now - was) >= abs(less - was) - 1e-12


@given(st.builds(Axes, unit, unit, unit, unit, unit), signed, signed, kernels)
def test_a_kind_event_never_lowers_mood_or_warmth(kind: Axes, valence: float, warmth: float, kernel: Kernel) -> None:
    """Polarity: an event that is good on every axis never lowers valence, warmth or trust, and never raises tension."""
    numbers = replace(Numbers(at_s=0.0), valence=valence)
    edge = replace(stranger("ana", 0.0, kernel), warmth=warmth)
    heard = replace(stimulus(kind), novelty=None)

    after, now = apply(numbers, heard, kernel), apply_edge(edge, heard, kernel)

    assert after.valence >= numbers.valence
    assert now.warmth >= edge.warmth
    assert now.trust >= edge.trust
    assert now.tension <= edge.tension


@given(st.floats(0.05, 1))
def test_trust_falls_faster_than_it_rises(strength: float) -> None:
    """M7: unkindness lowers trust more than the same amount of kindness raises it."""
    edge = stranger("ana", 0.0, KERNEL)
    good = apply_edge(edge, stimulus(Axes(0, strength, 0, strength, strength)), KERNEL)
    bad = apply_edge(edge, stimulus(Axes(0, -strength, 0, -strength, -strength)), KERNEL)

    assert edge.trust - bad.trust > good.trust - edge.trust


@given(st.floats(-1, 1), st.floats(0.01, 100 * DAY_S), st.floats(-1, 1))
def test_within_five_half_lives_a_number_is_home(value: float, half_s: float, base: float) -> None:
    """M4, M7: after five half-lives less than four hundredths of the distance are left."""
    assert abs(drifted(value, base, half_s, 5 * half_s) - base) <= 0.04 * abs(value - base)


@given(stimuli)
def test_m3_effects_are_in_range(heard: Stimulus) -> None:
    """M3: five axes give an effect in [-1, 1] on each drive."""
    assert len(effects(heard)) == len(DRIVES)
    assert all(-1 <= effect <= 1 for effect in effects(heard))


@pytest.mark.parametrize(("drive", "trait"), list(zip(DRIVES, SENSITIVITY, strict=True)))
def test_m4_a_trait_makes_its_drive_sensitive(drive: str, trait: str) -> None:
    """M4: the same event moves a drive further if its trait is strong, and time returns the drive to its base."""
    place = DRIVES.index(drive)
    dull, keen = (replace(KERNEL, **{trait: level}) for level in (0.1, 0.9))

    moved = [apply(Numbers(at_s=0.0), stimulus(INSULT, 0.9), kernel).drives[place] for kernel in (dull, keen)]
    home = advance(apply(Numbers(at_s=0.0), stimulus(INSULT), keen), 30 * DAY_S).drives[place]

    assert abs(moved[1] - DRIVE_BASE) > abs(moved[0] - DRIVE_BASE)
    assert home == pytest.approx(DRIVE_BASE, abs=1e-6)


def test_m5_mood_follows_from_satisfaction() -> None:
    """M5: an event without a tone of its own still moves the mood through its effect on the needs."""
    fed = Stimulus(axes=Axes(1, 1, 0, 1, 1), tone=0.0, novelty=None)
    starved = Stimulus(axes=Axes(-1, -1, 0, -1, -1), tone=0.0, novelty=None)
    before = Numbers(at_s=0.0)

    assert apply(before, fed, KERNEL).valence > before.valence > apply(before, starved, KERNEL).valence


ARC = Arc(arc="a", label="release pipeline", stems=("deploy", "pipeline", "release"), at_s=0.0)


def test_m6_an_arc_is_warmed_by_a_match_and_always_fades() -> None:
    """M6: a matching event strengthens an arc, an unrelated one does not, and time lowers both."""
    other = replace(ARC, arc="b", stems=("garden", "rose"))
    matched = dict(subjects.matching_arcs((ARC, other), frozenset(("release", "pipeline"))))

    warmed = subjects.strengthened((ARC, other), matched, 0.6, 0.5, keeps=0.8)
    later = subjects.advance_arcs(warmed, 48 * HOUR_S)

    assert warmed[0].intensity > ARC.intensity
    assert warmed[0].bias > 0
    assert warmed[1] == other
    assert [arc.intensity for arc in later] == pytest.approx([arc.intensity / 2 for arc in warmed])
    assert subjects.advance_arcs(warmed, 365 * DAY_S) == ()


def test_m6_an_arc_begins_with_what_was_named() -> None:
    """M6: its label and stems are the words that say something, in order; words that say nothing begin none."""
    born = subjects.subject("t", "The release pipeline failed again on Friday", 5.0, "shared:x:y:z", "ana")

    assert born is not None
    assert (born.label, born.intensity, born.at_s) == ("release pipeline failed", BORN, 5.0)
    assert set(born.stems) == {"release", "pipeline", "fail", "friday"}
    assert (born.sources, born.persons) == (("shared:x:y:z",), ("ana",))
    assert subjects.subject("t", "It is what it is.", 5.0, "shared:x:y:z", "ana") is None


def test_m6_a_subject_of_another_place_keeps_none_from_being_born() -> None:
    """M6: a subject has one arc in each audience, whatever it is called; a private arc prevents none elsewhere."""
    born = replace(ARC, arc="new", label="pipeline")

    assert len(subjects.with_birth((ARC,), born)) == 1
    assert len(subjects.with_birth((replace(ARC, sources=("private:slack:T1:Ana",)),), born)) == 2


def test_m6_the_weakest_arc_makes_room() -> None:
    """M6: the number of arcs is limited; a new arc replaces the weakest."""
    crowd = tuple(replace(ARC, arc=str(n), label=f"l{n}", stems=(f"s{n}",), intensity=0.2 + n / 20) for n in range(12))

    kept = subjects.with_birth(crowd, replace(ARC, arc="new", label="new"))

    assert len(kept) == 12
    assert "new" in {arc.arc for arc in kept}
    assert "0" not in {arc.arc for arc in kept}


def _event(at_s: float, heard: Stimulus | None) -> Event:
    return Event(at_s=at_s, kind="message", address="dm", person="ana", name="Ana", stimulus=heard, importance=0.3)


@given(
    st.lists(
        st.tuples(
            stimuli,
            st.floats(0, 5 * DAY_S),
            st.sampled_from(["", "hurtful", "apology", "joy"]),
            st.sampled_from(["", "new", "known"]),
        ),
        max_size=20,
    ),
    kernels,
)
@settings(max_examples=60)
def test_m23_the_trace_folds_again_to_the_same_bits(
    happened: list[tuple[Stimulus, float, str, str]], kernel: Kernel
) -> None:
    """M23: folding the trace from its first row, written and read as JSON, gives the stored numbers bit for bit."""
    psyche, rows, at_s = Psyche(), [], 0.0
    for n, (heard, after_s, kind, subject) in enumerate(happened):
        at_s += after_s
        took = (Appraisal(person="ana", kind=kind),) if kind else ()
        born = Arc(arc=f"t{n}", label=f"the {n}", stems=("a", "b"), at_s=at_s, intensity=BORN, band=1)
        event = replace(
            _event(at_s, heard),
            matches=tuple((arc.arc, 0.6) for arc in psyche.arcs) if subject == "known" else (),
            birth=born if subject == "new" else None,
        )
        change = Change(turn=f"t{n}", audience="a", event=event, compiled=kernel, outcome="think", appraisals=took)
        folded = change.fold(psyche)
        rows.append((f"t{n}", msgspec.json.encode(folded.inputs), folded.traits))
        psyche = _kept(psyche, folded)

    again = Psyche()
    for turn, inputs, traits in rows:  # a kill in between changes nothing: each row is complete
        folded = change_of(turn, msgspec.json.decode(inputs), "ana", traits).fold(again)
        again = _kept(again, folded)

    assert again.numbers == psyche.numbers
    assert [replace(edge, name="Ana") for edge in again.edges] == list(psyche.edges)
    assert [(arc.arc, arc.intensity, arc.bias, arc.at_s) for arc in again.arcs] == [
        (arc.arc, arc.intensity, arc.bias, arc.at_s) for arc in psyche.arcs
    ]


def change_of(turn: str, inputs: Mapping[str, Any], person: str, traits: tuple[float, ...]) -> Change:
    """Rebuild the change behind a row of the trace, as far as numbers go: the laws depend on these inputs alone."""
    told = inputs["stimulus"]
    stimulus = None
    if told:
        effects = tuple(told["drive_effects"])
        stimulus = Stimulus(**{**told, "axes": Axes(*told["axes"]), "drive_effects": effects})
    born = Arc(arc=turn, label=turn, stems=(), at_s=inputs["at_s"], intensity=BORN, band=1)
    return Change(
        turn=turn,
        audience="",
        event=Event(
            at_s=inputs["at_s"],
            kind=inputs["kind"],
            address=inputs["address"],
            person=person,
            name="",
            stimulus=stimulus,
            importance=inputs["importance"],
            matches=tuple((arc, match) for arc, match in inputs["matches"]),
            birth=born if inputs["born"] else None,
        ),
        compiled=Kernel(*traits),
        outcome=inputs["outcome"],
        appraisals=tuple(
            Appraisal(person=who, kind=kind, strength=strength) for who, kind, strength in inputs.get("appraisals", ())
        ),
        hint=inputs["hint"],
        mood=inputs["mood"],
    )


def _kept(psyche: Psyche, folded: Folded) -> Psyche:
    """Return what a store holds after a turn: written and read back."""
    kept = Psyche(numbers=folded.numbers, edges=folded.edges, arcs=psyche.arcs if folded.arcs is None else folded.arcs)
    return msgspec.json.decode(msgspec.json.encode(kept), type=Psyche)


def test_i3_only_the_souls_own_side_is_kept() -> None:
    """I3: an edge holds what a person is to the soul, but no mood, drive or energy of theirs."""
    assert set(Edge.__struct_fields__).isdisjoint({"mood", "valence", "arousal", "energy", "drives"})


def test_an_event_before_the_last_one_turns_no_clock_back() -> None:
    """Time: an instant before the state's own does not change the state."""
    numbers = Numbers(at_s=100.0, valence=0.5)

    moved = feel(Psyche(numbers=numbers), _event(50.0, None), KERNEL)

    assert moved.numbers == numbers


@given(signed, signed, st.floats(-0.5, 1), st.floats(0, 3))
def test_a_push_never_passes_its_reach(value: float, delta: float, base: float, strength: float) -> None:
    """Reach: a push moves a value towards the limit of its strength and never past it."""
    reach = 0.3 + 0.7 * min(1.0, strength)
    moved = push(value, delta, base, -1.0, 1.0, strength)

    if delta > 0:
        assert value <= moved <= max(value, base + (1 - base) * reach) + 1e-12
    elif delta < 0:
        assert value >= moved >= min(value, base - (base + 1) * reach) - 1e-12


TOP = 0.75
"""Where the highest band of a need begins."""
ROADS = [("threat", "safety"), ("pressure", "autonomy")]


@pytest.mark.parametrize(("kind", "need"), ROADS)
def test_each_need_that_people_press_has_a_road_into_its_highest_band_and_back(kind: str, need: str) -> None:
    """Six strong ones a day for ten days raise the need past its last cut; within a week of peace it rests again."""
    at, numbers = DRIVES.index(need), Numbers(at_s=0.0)
    for day in range(10):
        for n in range(6):
            numbers = advance(numbers, day * DAY_S + n * 600.0)
            numbers = apply_appraisal(numbers, Appraisal(person="ana", kind=kind, strength="strong"), Kernel())
    highest = numbers.drives[at]

    assert highest > TOP
    assert advance(numbers, numbers.at_s + 7 * DAY_S).drives[at] < 0.55
