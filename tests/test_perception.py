"""Who may be shown what: the audience rule, and the worked example of the security design."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.perception import SELF, Place, may_show, private, shared

ANA, BEN, OZ, DEE = "slack:T1:ana", "slack:T1:ben", "slack:T1:oz", "slack:T2:dee"
OPS, ALL, EXT = "shared:slack:T1:ops", "shared:slack:T1:all", "shared:slack:T1:ext"
MEMBERS = {OPS: frozenset({ANA, BEN}), ALL: frozenset({ANA, BEN, OZ}), EXT: frozenset({ANA, BEN, DEE})}
TARGETS = (private(ANA), private(BEN), OPS, ALL, EXT, private(OZ))
TABLE = {
    (private(ANA),): (1, 0, 0, 0, 0, 0),
    (OPS,): (1, 1, 1, 0, 0, 0),
    (ALL,): (1, 1, 1, 1, 0, 1),
    (EXT,): (1, 1, 1, 0, 1, 0),
    ("private:terminal:local:oz",): (0, 0, 0, 0, 0, 0),
    (private(ANA), ALL): (1, 0, 0, 0, 0, 0),
    (OPS, EXT): (1, 1, 1, 0, 0, 0),
    (SELF,): (1, 1, 1, 1, 1, 1),
}


@pytest.mark.parametrize("sources", TABLE, ids=" + ".join)
def test_the_worked_example(sources: tuple[str, ...]) -> None:
    """Each row of the table: learned there, may stand here; the soul itself and the owner's terminal see all."""
    assert tuple(int(may_show(sources, target, MEMBERS)) for target in TARGETS) == TABLE[sources]
    assert may_show(sources, SELF, MEMBERS)
    assert may_show(sources, "private:terminal:local:oz", MEMBERS, owner=True)


def test_what_is_not_known_is_not_shown() -> None:
    """Unknown members: only what was learned in that very audience."""
    assert may_show((OPS,), OPS, {})
    assert not may_show((ALL,), OPS, {ALL: MEMBERS[ALL]})
    assert not may_show((OPS,), private(ANA), {})


def test_linked_ids_share_what_either_taught_in_private() -> None:
    """A private audience is its person, whichever id it was."""
    members = {private(ANA): frozenset({"ana"}), private("discord:@me:7"): frozenset({"ana"})}

    assert may_show((private(ANA),), private("discord:@me:7"), members)


AUDIENCES = st.sampled_from([*TARGETS, SELF])


@given(st.lists(AUDIENCES, max_size=4), AUDIENCES, AUDIENCES)
def test_mixing_only_narrows(sources: list[str], more: str, target: str) -> None:
    """One more source never opens what was closed."""
    if may_show([*sources, more], target, MEMBERS):
        assert may_show(sources, target, MEMBERS)


def test_a_conversation_key_has_four_parts() -> None:
    """`network:workspace:channel:thread`; its channel is the shared audience."""
    assert Place.of("slack:T1:C1:17.2") == Place("slack", "T1", "C1", "17.2")
    assert shared("slack:T1:C1:17.2") == "shared:slack:T1:C1"
    with pytest.raises(ValueError, match="not a conversation key"):
        Place.of("slack:T1")
