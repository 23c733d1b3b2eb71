"""The processes that ship and need no function of their own. Their words are in `soul/processes/NAME.md`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from claudius.cognition.processes import Process

_TALK = ("internal_monologue", "external_dialogue")
_PORTRAIT = ("user_model_check", "user_model_update", "model_change_note")
_STATE = ("soul_state_check", "soul_state_update")
_CALMED = {"neutral": "main_process", "engaged": "main_process", "focused": "deep_work"}


def _after_talk(parse_result: Mapping[str, Any]) -> str | None:
    """Follow the mood that this turn changed: to frustration, or to work. Pure."""
    moved = parse_result.get("soul_state", {})
    if moved.get("emotionalState") == "focused":
        return "problem_solving" if moved.get("currentTask") else "deep_work"
    return "frustrated" if moved.get("emotionalState") == "frustrated" else None


def _after_greeting(parse_result: Mapping[str, Any]) -> str:
    """Leave after one turn: to work if the mood is focused, else to ordinary talk. Pure."""
    mood = parse_result.get("soul_state", {}).get("emotionalState")
    return "deep_work" if mood == "focused" else "main_process"


def _after_work(parse_result: Mapping[str, Any]) -> str | None:
    """Leave when the mood is no longer focused, or the task was dropped. Pure."""
    moved = parse_result.get("soul_state", {})
    has_left = moved.get("emotionalState", "focused") != "focused"
    return "main_process" if has_left or moved.get("currentTask") == "" else None


def _after_frustration(parse_result: Mapping[str, Any]) -> str | None:
    """Leave when the mood has passed. Pure."""
    return _CALMED.get(parse_result.get("soul_state", {}).get("emotionalState"))


MAIN_PROCESS = Process(
    name="main_process",
    steps=(*_TALK, *_PORTRAIT, *_STATE, "assess_peer"),
    next=("frustrated", "deep_work", "problem_solving"),
    should_transition=_after_talk,
    description="main_process: the ordinary mind, all steps.",
)
GREETING = Process(
    name="greeting",
    steps=(*_TALK, *_PORTRAIT),
    wording="greeting",
    linger=timedelta(hours=24),
    next=("main_process", "deep_work"),
    should_transition=_after_greeting,
    description="greeting: the first words with someone the soul never met.",
)
DEEP_WORK = Process(
    name="deep_work",
    steps=(*_TALK, *_STATE),
    wording="deep_work",
    linger=timedelta(hours=8),
    moods=("focused", "frustrated", "sardonic"),  # a quarrel in another conversation ends no work here
    next=("main_process",),
    should_transition=_after_work,
    description="deep_work: one task, precise and complete, nothing beside it.",
)
FRUSTRATED = Process(
    name="frustrated",
    steps=(*_TALK, *_STATE),
    wording="frustrated",
    intervals={"soul_state_check": 1},
    linger=timedelta(hours=2),
    moods=("frustrated", "sardonic"),
    next=("main_process", "deep_work"),
    should_transition=_after_frustration,
    description="frustrated: short and dry until the mood passes.",
)
PROACTIVE = Process(
    name="proactive",
    steps=_TALK,
    wording="proactive",
    silence_ok=True,
    next=(),
    description="proactive: to write first, for one good reason; borrowed for a turn, never a conversation's home.",
)
LOOKING_INWARD = Process(
    name="looking_inward",
    steps=("internal_monologue", *_STATE),
    wording="looking_inward",
    intervals={"soul_state_check": 1},
    silence_ok=True,
    next=(),
    description="looking_inward: to look, once talk has ended, at what it has left behind; silent, "
    "and borrowed for one turn.",
)
