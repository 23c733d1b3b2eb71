"""Read LoCoMo, a public set of long conversations, from a file that the owner has.

It is CC BY-NC 4.0, and never shipped. Its key is wrong in some six of a hundred answers, so evidence is the figure.
Source: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", 2024.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from claudius.errors import UsageProblem

UNANSWERABLE = 5
"""The category of questions that the conversation does not answer."""
PACE = timedelta(minutes=1)
"""Between two messages of one sitting."""
_DATED = "%I:%M %p on %d %B, %Y"
_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D\d+:\d+")


class TalkMessage(Struct, frozen=True):
    """One message; `id` is what evidence refers to."""

    id: str
    at: datetime
    speaker: str
    text: str
    picture: str = ""
    """What its picture shows."""


class TalkQuestion(Struct, frozen=True):
    """One question, and the ids of the messages that answer it."""

    text: str
    evidence: tuple[str, ...]
    is_answerable: bool


class LongTalk(Struct, frozen=True):
    """One long conversation, oldest message first."""

    name: str
    messages: tuple[TalkMessage, ...]
    questions: tuple[TalkQuestion, ...]


def read(path: Path) -> list[LongTalk]:
    """Read every conversation of a file, or of a directory with a file each. Raises: UsageProblem."""
    try:
        if path.is_dir():
            files = sorted(path.rglob("*.json"))
            return [_conversation({"sample_id": one.stem, **msgspec.json.decode(one.read_bytes())}) for one in files]
        return [_conversation(one) for one in msgspec.json.decode(path.read_bytes())]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, msgspec.MsgspecError) as error:
        raise UsageProblem(f"{path}: {error}: give the set's own JSON file") from error


def _conversation(row: Mapping[str, Any]) -> LongTalk:
    messages = tuple(_messages(row.get("conversation", row)))
    known = {one.id for one in messages}
    questions = [
        TalkQuestion(
            text=str(one["question"]),
            evidence=tuple(id_ for id_ in _TURN.findall(str(one.get("evidence", ()))) if id_ in known),
            is_answerable=one.get("category") != UNANSWERABLE,
        )
        for one in row["qa"]
    ]
    return LongTalk(name=str(row["sample_id"]), messages=messages, questions=tuple(questions))


def _messages(told: Mapping[str, Any]) -> Iterator[TalkMessage]:
    sessions = sorted((int(found[1]), key) for key in told if (found := _SESSION.fullmatch(key)))
    for _, key in sessions:
        began = datetime.strptime(told[f"{key}_date_time"].strip(), _DATED).replace(tzinfo=UTC)  # it names no zone
        for number, one in enumerate(told[key]):
            at = began + number * PACE
            picture = str(one.get("blip_caption") or "")
            yield TalkMessage(id=one["dia_id"], at=at, speaker=one["speaker"], text=one["text"], picture=picture)
