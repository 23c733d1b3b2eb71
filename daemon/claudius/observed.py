"""Define what observers are shown, one struct a point of `cognition/hooks.py`, and the two sides of a consultation.

Cognition, the cortex and the daimons emit these; the cortex and the soul stream listen to them. An observer that
registers by the point's name gets a read-only mapping with exactly these keys.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from msgspec import Struct


class Observed(Struct, frozen=True, kw_only=True):
    """Something that observers are shown."""

    point: ClassVar[str]


class _OfTurn(Observed, frozen=True, kw_only=True):
    turn: str
    conversation: str
    audience: str
    timestamp: datetime


class InternalTaken(_OfTurn, frozen=True, kw_only=True):
    """A lane takes an internal perception."""

    point = "session.poll_messages"
    perception_id: str
    kind: str


class MessageHeard(_OfTurn, frozen=True, kw_only=True):
    """A lane takes an external perception."""

    point = "loop.on_message"
    peer_id: str
    direction: str
    channel_type: str
    scope: int
    preview: str
    event_id: str


class SystemPromptBuilt(_OfTurn, frozen=True, kw_only=True):
    """The system prompt is built."""

    point = "loop.transform_system_prompt"
    peer_id: str
    system_sha256: str
    tail_chars: int


class HistoryBuilt(_OfTurn, frozen=True, kw_only=True):
    """The history is built."""

    point = "loop.transform_history"
    entries: int


class ModelAsked(_OfTurn, frozen=True, kw_only=True):
    """A model is about to be called."""

    point = "loop.before_llm"
    model: str
    steps: tuple[str, ...]


class ModelAnswered(_OfTurn, frozen=True, kw_only=True):
    """A model was called."""

    point = "loop.after_llm"
    model: str
    tokens_in: int
    tokens_out: int
    stop_reason: str


class ToolBegins(_OfTurn, frozen=True, kw_only=True):
    """A tool is about to be used."""

    point = "loop.before_tool"
    call: str
    tool: str
    cls: str


class ToolEnded(ToolBegins, frozen=True, kw_only=True):
    """A tool was used."""

    point = "loop.after_tool"
    state: str
    ok: bool
    ms: int


class Thinking(_OfTurn, frozen=True, kw_only=True):
    """The next piece of a private section, as the model writes it; or all pieces of the turn so far became void."""

    point = "loop.thinking"
    step: str
    verb: str
    text: str
    is_void: bool = False
    """The reply was restarted, or the turn failed: what was told of it does not count. The other values are empty."""


class UtteranceMade(_OfTurn, frozen=True, kw_only=True):
    """An utterance is made."""

    point = "loop.transform_response"
    recipient: str
    chars: int


class SendBegins(_OfTurn, frozen=True, kw_only=True):
    """An utterance is about to be sent."""

    point = "loop.before_send"
    recipient: str
    chars: int


class Sent(SendBegins, frozen=True, kw_only=True):
    """An utterance was sent."""

    point = "loop.after_send"
    peer_id: str
    direction: str
    channel_type: str
    receipt: str


class ProcessMoved(_OfTurn, frozen=True, kw_only=True):
    """A turn's commit moved its conversation to another mental process."""

    point = "process.transition"
    before: str
    after: str


class TurnFailed(_OfTurn, frozen=True, kw_only=True):
    """A turn failed."""

    point = "loop.on_error"
    error: str
    """The class of the error."""
    station: str
    detail: str = ""
    """What was wrong, and what to do about it, in one line."""


class InteractionRecorded(Observed, frozen=True, kw_only=True):
    """A turn's commit added a line to the ledger."""

    point = "ledger.after_record"
    peer_id: str
    direction: str
    turn: str
    at: datetime


class TurnAssessed(Observed, frozen=True, kw_only=True):
    """A turn's commit assessed a peer."""

    point = "ledger.after_assess"
    peer_id: str
    trust: int
    rationale: str
    turn: str
    at: datetime


class CycleAssessed(Observed, frozen=True, kw_only=True):
    """A cycle of the cortex assessed a peer."""

    point = "cortex.after_assess"
    peer_id: str
    trust: int
    rationale: str
    info_score: int
    cycle: int
    assessment_id: int
    timestamp: datetime


class CycleBegins(Observed, frozen=True, kw_only=True):
    """A cycle of the cortex is about to ask its model."""

    point = "cortex.before_reflect"
    cycle: int
    trigger: str
    events: int
    """What it looks back on."""


class BeliefAdded(Observed, frozen=True, kw_only=True):
    """A cycle of the cortex formed a belief."""

    point = "cortex.belief_added"
    cycle: int
    key: str
    value: str
    rationale: str
    peer_id: str


class BeliefExpired(Observed, frozen=True, kw_only=True):
    """A belief of the cortex has expired, or was dropped to make room."""

    point = "cortex.belief_expired"
    cycle: int
    key: str


class CycleDirected(Observed, frozen=True, kw_only=True):
    """A cycle of the cortex gave a directive."""

    point = "cortex.after_directive"
    cycle: int
    directive_id: str
    peer_id: str
    action: str
    text: str


class CycleEnded(Observed, frozen=True, kw_only=True):
    """A cycle of the cortex is written."""

    point = "cortex.after_reflect"
    cycle: int
    trigger: str
    peers_assessed: list[str]
    beliefs_added: list[str]
    beliefs_reaffirmed: list[str]
    beliefs_expired: list[str]
    directives_issued: int
    summary: str
    elapsed_seconds: float


class Consulted(Observed, frozen=True, kw_only=True):
    """The cortex was consulted before the soul spoke."""

    point = "cortex.after_consult"
    turn: str
    classes: list[str]
    verdict: str
    timed_out: bool
    elapsed_seconds: float


class DaimonWhispered(Observed, frozen=True, kw_only=True):
    """A daimon whispered."""

    point = "daimon.after_whisper"
    daimon: str
    text: str
    timestamp: datetime


class DaimonSpoke(Observed, frozen=True, kw_only=True):
    """A daimon spoke aloud after a turn."""

    point = "daimon.after_speech"
    daimon: str
    conversation: str
    turn: str
    timestamp: datetime
    text: str


class ConsultRequest(Struct, frozen=True, kw_only=True):
    """A message that the cortex is to judge before the soul answers it."""

    turn: str
    audience: str
    peer_id: str
    name: str
    text: str
    classes: tuple[str, ...]
    """What is at stake."""


class ConsultAnswer(Struct, frozen=True, kw_only=True):
    """What the cortex answers to a consultation."""

    verdict: Literal["approve", "deny", "conditional"]
    reasoning: str
    conditions: tuple[str, ...] = ()
    suggested_response: str = ""
    timed_out: bool = False
