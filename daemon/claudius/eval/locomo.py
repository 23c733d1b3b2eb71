"""Read LoCoMo, a public set of long conversations, from a file that the owner has.

It is CC BY-NC 4.0, and never shipped. Its key is wrong in some six of a hundred answers, so evidence is the figure.
Source: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", 2024.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from claudius.errors import UsageProblem

UNANSWERABLE = 5
"""The category of questions that the conversation does not answer."""
_DATED = "%I:%M %p on %d %B, %Y"
_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D\d+:\d+")


class Message(Struct, frozen=True):
    """One message; `id` is what evidence refers to."""

    id: str
    at: datetime
    speaker: str
    text: str


class Question(Struct, frozen=True):
    """One question, and the ids of the messages that answer it."""

    text: str
    evidence: tuple[str, ...]
    is_answerable: bool


class Conversation(Struct, frozen=True):
    """One long conversation, oldest message first."""

    name: str
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]


def read(path: Path) -> list[Conversation]:
    """Read every conversation. Raises: UsageProblem."""
    try:
        return [_conversation(one) for one in msgspec.json.decode(path.read_bytes())]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, msgspec.MsgspecError) as error:
        raise UsageProblem(f"{path}: {error}: give the set's own JSON file") from error


def _conversation(row: Mapping[str, Any]) -> Conversation:
    messages = tuple(_messages(row["conversation"]))
    known = {one.id for one in messages}
    questions = [
        Question(
            text=str(one["question"]),
            evidence=tuple(id_ for id_ in _TURN.findall(str(one.get("evidence", ()))) if id_ in known),
            is_answerable=one.get("category") != UNANSWERABLE,
        )
        for one in row["qa"]
    ]
    return Conversation(name=str(row["sample_id"]), messages=messages, questions=tuple(questions))


def _messages(told: Mapping[str, Any]) -> Iterator[Message]:
    sessions = sorted((int(found[1]), key) for key in told if (found := _SESSION.fullmatch(key)))
    for _, key in sessions:
        at = datetime.strptime(told[f"{key}_date_time"].strip(), _DATED)  # noqa: DTZ007 - the set names no zone
        for one in told[key]:
            seen = f" [shows {one['blip_caption']}]" if one.get("blip_caption") else ""
            yield Message(id=one["dia_id"], at=at, speaker=one["speaker"], text=f"{one['text']}{seen}")
