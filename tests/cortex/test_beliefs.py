"""Beliefs: how they are formed, affirmed, revised, expired and evicted."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claudius.cortex.beliefs import MOST_LESSONS, NEW_A_CYCLE, alignment, change, clean_value, learn, slug
from claudius.cortex.models import Changed
from claudius.ledger_types import Belief, Lesson
from reflecting import ANN, BEN, DM, NOW, OPS, belief, document, minutes


def changed(
    every: Sequence[Belief], *proposed: dict[str, Any], now: datetime = NOW, cycle: int = 2, audience: str = OPS
) -> Changed:
    """Return what a cycle of one audience does to the beliefs."""
    return change(every, proposed, document(ANN, audience=audience), audience=audience, cycle=cycle, now=now)


def entry(key: str = "ann-is-reliable", value: str = "Ann delivers.", **more: Any) -> dict[str, Any]:
    """Return a belief as the model writes it."""
    return {"key": key, "value": value, "rationale": "Three times now."} | more


def test_fr_cx_05_a_new_belief_is_kept_with_what_it_stands_on() -> None:
    """FR-CX-05: key, value, rationale, cycle, clock, the audiences it was read in, and its source interactions."""
    found = changed([], entry("Ann is RELIABLE!", peer_id=ANN))

    assert found.added == ("ann-is-reliable",)
    (made,) = found.put
    assert (made.peer_id, made.sources, made.evidence) == (ANN, (OPS,), (1, 2))
    assert (made.source_cycle, made.created_at, made.ttl_minutes) == (2, NOW, 120)


def test_fr_cx_05_the_same_again_is_affirmed() -> None:
    """FR-CX-05: the same key and value resets clock and cycle, and keeps the rest."""
    found = changed([belief(age=60, evidence=(7,))], entry(rationale="Again."))

    assert found.reaffirmed == ("ann-is-reliable",)
    assert found.put == (replace(belief(), source_cycle=2, created_at=NOW, evidence=(1, 2, 7)),)


def test_fr_cx_05_a_revision_names_the_old() -> None:
    """FR-CX-05: if the rationale does not mention the old value, the old value is put before it."""
    found = changed([belief(age=60)], entry(value="Ann is late.", rationale="Two missed days."))

    assert found.put[0].rationale == 'was: "Ann delivers."; Two missed days.'
    assert found.revised == ("ann-is-reliable",)


def test_fr_cx_05_a_revision_that_explains_itself_stands_as_it_is() -> None:
    """FR-CX-05: a rationale that shares a content word with the old value needs no addition."""
    found = changed([belief(age=60)], entry(value="Ann is late.", rationale="She delivers late now."))

    assert found.put[0].rationale == "She delivers late now."


def test_at_most_eight_new_ones_a_cycle() -> None:
    """Only the first eight of a cycle's new beliefs are kept."""
    assert len(changed([], *(entry(f"key-{n}") for n in range(12))).put) == NEW_A_CYCLE


def test_fr_cx_05_at_the_cap_the_oldest_goes() -> None:
    """FR-CX-05: there are at most twenty. The oldest is evicted, whatever time it has left."""
    standing = [belief(f"key-{n}", age=n) for n in range(20)]

    found = changed(standing, entry("fresh"))

    assert found.gone == (("key-19", OPS),)
    assert [one.key for one in found.put] == ["fresh"]


def test_the_owners_pin_outlasts_everything() -> None:
    """A pinned belief does not expire, is not evicted, and is rewritten by no cycle."""
    pinned = belief("kept", age=9999, state="pinned")
    standing = [pinned, *(belief(f"key-{n}", age=n) for n in range(19))]

    found = changed(standing, entry("fresh"), entry("kept", "Another."))

    assert ("kept", OPS) not in found.gone
    assert [one.key for one in found.put] == ["fresh"]


def test_what_the_owner_disputes_is_not_believed_again() -> None:
    """A disputed key is refused, whoever proposes it, and does not count towards the limit."""
    disputed = belief("wrong", state="disputed")

    assert changed([disputed], entry("wrong")).put == ()
    assert changed([disputed, *(belief(f"k{n}", age=1) for n in range(19))], entry("fresh")).gone == ()


@pytest.mark.parametrize(
    "bad",
    [
        {},
        entry(key=""),
        entry(key="!!!"),
        entry(value=""),
        entry(value=" \u200b "),
        entry(key=3),
        entry(value=None),
        entry(peer_id=BEN),
        entry(peer_id=7),
    ],
)
def test_an_invalid_belief_is_dropped(bad: dict[str, Any]) -> None:
    """An entry without key or value, or about a peer that this cycle did not see, is left out alone."""
    assert [one.key for one in changed([], bad, entry("good")).put] == ["good"]


def test_one_key_stands_once_in_each_audience() -> None:
    """What a direct message teaches never changes a channel's belief with the same key."""
    found = changed([belief(age=30)], entry(value="Ann confided in me."), audience=DM)

    assert found.added == ("ann-is-reliable",)
    assert found.gone == ()
    assert found.put[0].audience == DM


@given(st.text(max_size=400))
def test_a_value_is_one_plain_line(text: str) -> None:
    """A value is one line of 200 characters without hidden characters or markup. Cleaning it twice changes nothing."""
    kept = clean_value(text)

    assert len(kept) <= 200
    assert not set(kept) & set("<>`\n\r\u202e\u200b\x00")
    assert clean_value(kept) == kept


@given(st.text(max_size=200))
def test_a_key_is_kebab(text: str) -> None:
    """A key has 64 characters of words and hyphens, and a slug is unchanged by slugging."""
    key = slug(text)

    assert len(key) <= 64
    assert not key.startswith("-")
    assert not key.endswith("-")
    assert slug(key) == key


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 300)), max_size=30), st.lists(st.integers(0, 30), max_size=15)
)
def test_fr_cx_05_whatever_happens_the_set_stays_within_its_bounds(
    before: list[tuple[int, int]], proposed: list[int]
) -> None:
    """FR-CX-05: there are never more than twenty, none is expired, and each key appears once."""
    every = list({f"k{n}": belief(f"k{n}", age=age) for n, age in before}.values())[:20]

    found = changed(every, *(entry(f"k{n}") for n in proposed))

    after = {(one.key, one.audience): one for one in every} | {(one.key, one.audience): one for one in found.put}
    left = [one for place, one in after.items() if place not in found.gone]
    assert len(left) <= 20
    assert not any(one.is_expired(NOW) for one in left)
    assert len({one.key for one in found.put}) == len(found.put)


def test_the_verdict_on_the_souls_own_conduct_is_a_belief() -> None:
    """Aligned or drift is kept as `self-alignment`, and any other value is not a verdict."""
    verdict, made = alignment({"verdict": "drift", "evidence": "Three flippant answers."})

    assert verdict == "drift"
    assert made
    assert (made["key"], made["value"]) == ("self-alignment", "drift: Three flippant answers.")
    assert alignment({"verdict": "perfect"}) == ("", None)
    assert alignment({}) == ("", None)


def affirmed(times: int, hours: float) -> Lesson:
    """Return what remains of a key that was formed once and affirmed this often, evenly over this many hours."""
    lessons: dict[str, Lesson] = {}
    for n in range(times + 1):
        at = NOW + minutes(60 * hours * n / max(1, times))
        put, _ = learn(list(lessons.values()), [belief()], at)
        lessons |= {one.key: one for one in put}
    return lessons["ann-is-reliable"]


@pytest.mark.parametrize(("times", "hours", "learned"), [(3, 24, True), (2, 48, False), (9, 23, False), (3, 300, True)])
def test_a_lesson_is_what_kept_being_affirmed(*, times: int, hours: float, learned: bool) -> None:
    """Three cycles and one day turn a belief into a lesson."""
    assert affirmed(times, hours).is_learned is learned


def test_the_least_affirmed_lesson_makes_room() -> None:
    """There are at most thirty lessons, and the least affirmed is evicted."""
    first = affirmed(3, 48)
    every = [replace(first, key=f"k{n}", affirmed=10 + n) for n in range(MOST_LESSONS)]
    candidate = replace(first, key="ann-is-reliable", affirmed=2, first_at=NOW - minutes(6000))

    put, lost = learn([*every, candidate], [belief()], NOW + minutes(3000))

    assert put == ()
    assert lost == (("ann-is-reliable", OPS),)
