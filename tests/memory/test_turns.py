"""A turn's record: packed, read back, and refused if damaged."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from claudius.intent import Thought
from claudius.memory.database import pack
from claudius.memory.packing import unpacked
from claudius.memory.seen import ERASED, ERASED_SNAPSHOT, KeptTurn, snapshot_of, unpack
from lab.sample import message, said


@given(st.text(max_size=5000))
def test_whatever_is_packed_is_read_again(text: str) -> None:
    """Packing and unpacking a value returns its JSON."""
    assert json.loads(unpacked(pack(text))) == text


def test_a_kept_turn_comes_back_as_it_was() -> None:
    """Lines, thoughts, changes, replies and snapshot are read back as they were; empty parts take no space."""
    turn = KeptTurn(
        entries=(message("Why?"), said()),
        snapshot=Raw(b'{"turn":1}'),
        attention={"outcome": "think"},
        changes={"user_model": {"version": 2}},
        thoughts=(Thought(step="internal_monologue", content="Hm."),),
        steps=("internal_monologue",),
        prompt_sha256="p",
        responses={"0": ("r", "Because.")},
    )

    assert unpack(pack(turn)) == turn
    assert snapshot_of(turn) == b'{"turn":1}'
    assert unpacked(pack(KeptTurn())) == b"{}"


def test_a_record_without_a_snapshot_says_why() -> None:
    """The reason is that no model was asked, or that the snapshot was erased."""
    assert snapshot_of(KeptTurn()) == b""
    assert snapshot_of(KeptTurn(snapshot=ERASED_SNAPSHOT)) == ERASED


@pytest.mark.parametrize("damage", [b"", b"{}", b"\x02abc", b"\x01abc", pack("A" * 300)[:-4]])
def test_a_damaged_record_is_refused(damage: bytes) -> None:
    """A record that this code did not pack, or that is cut short, is an error and never half a record."""
    with pytest.raises(ValueError, match="packed document"):
        unpacked(damage)
