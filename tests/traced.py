"""Rebuild what moved the psyche from a row of its trace: the laws are a function of these inputs alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from claudius.psyche.change import BORN, MOST_ARCS, Change, Event
from claudius.psyche.personality import Kernel
from claudius.psyche.state import Axes, Stimulus
from claudius.psyche_types import Appraisal, Arc


def change_of(turn: str, inputs: Mapping[str, Any], person: str, traits: tuple[float, ...]) -> Change:
    """Rebuild the change behind a row of the trace, as far as numbers go. Pure."""
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
        max_arcs=inputs["born"] or MOST_ARCS,
        compiled=Kernel(*traits),
        outcome=inputs["outcome"],
        appraisals=tuple(
            Appraisal(person=who, kind=kind, strength=strength) for who, kind, strength in inputs.get("appraisals", ())
        ),
        hint=inputs["hint"],
        mood=inputs["mood"],
    )
