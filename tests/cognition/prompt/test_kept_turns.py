"""Turns that an earlier version stored can still be replayed."""

import json
from pathlib import Path
from typing import Any

import pytest

from claudius.cognition.prompt.assembly import prompt_sha256
from claudius.cognition.prompt.snapshot import rebuild
from kept_texts import Texts

KEPT: dict[str, Any] = json.loads(Path(__file__).with_name("kept_turns.json").read_text("utf-8"))
"""Written by version 0.1.0 at 396c010 and never rewritten: a first turn, a full, a scheduled and a compacted one."""
IN_0_2_0 = ('"audience":', '"audiences":[],"audience":')
"""What version 0.2.0 wrote besides."""


@pytest.mark.parametrize("besides", [("", ""), IN_0_2_0], ids=["0.1.0", "0.2.0"])
@pytest.mark.parametrize("turn", KEPT["turns"], ids=["first", "full", "clock", "compacted"])
def test_a_turn_kept_by_an_earlier_version_replays_byte_for_byte(
    turn: dict[str, Any], besides: tuple[str, str]
) -> None:
    """`replay` holds for every turn in the database, whichever version wrote it."""
    blobs = {sha256: content.encode() for sha256, content in KEPT["blobs"].items()}

    prompt = rebuild(turn["snapshot"].replace(*besides, 1).encode(), Texts(blobs=blobs))

    assert prompt_sha256(prompt) == turn["prompt_sha256"]
    assert prompt.cached == turn["cached"]
