"""Call observers at twelve fixed points of a turn; an observer cannot change what it sees, and its errors are logged.

    session.poll_messages          a lane takes an internal perception
    loop.on_message                a lane takes an external perception
    loop.transform_system_prompt   the system prompt is built
    loop.transform_history         the history is built
    loop.before_llm after_llm      before and after a model call
    loop.before_tool after_tool    before and after a tool is used
    loop.transform_response        an utterance is made
    loop.before_send after_send    before and after an utterance is sent to a network
    loop.on_error                  a turn failed

In addition, a model call reports each piece of private text as it is written (`loop.thinking`), only while somebody
listens; and the ledger, the cortex and the daimons report what they did: `ledger.after_record`, `ledger.after_assess`,
`cortex.before_reflect`, `cortex.after_reflect`, `cortex.after_assess`, `cortex.after_directive`,
`cortex.after_consult`, `cortex.belief_added`, `cortex.belief_expired`, `daimon.after_whisper`, `daimon.after_speech`; a
commit that moves a conversation to another process reports `process.transition`.

The `show_…` functions emit the events of a turn as they happen; `noted` builds the ledger entries that the turn's
commit adds from the same facts. Source: the cortex design, section 2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from time import monotonic
from types import MappingProxyType
from typing import Any, TypedDict, TypeVar

from msgspec.structs import asdict, replace

from claudius import observed
from claudius.cognition.reply.parser import Section
from claudius.config.load import blot
from claudius.failure import Failure
from claudius.intent import Call, Intent, Utterance
from claudius.ledger_types import PREVIEW_CHARS, Interaction, Noted
from claudius.memory.inbox import Pending
from claudius.observed import (
    HistoryBuilt,
    InteractionRecorded,
    InternalTaken,
    MessageHeard,
    ModelAnswered,
    ModelAsked,
    Observed,
    ProcessMoved,
    SendBegins,
    Sent,
    SystemPromptBuilt,
    Thinking,
    ToolBegins,
    ToolEnded,
    TurnAssessed,
    TurnFailed,
    UtteranceMade,
)
from claudius.perception import Kind, MessageExtra, Origin, Perception, Place, ReactionExtra
from claudius.prompt import Prompt
from claudius.psyche.events import scope
from claudius.psyche.words import leaning
from claudius.recollection import Recollection
from claudius.tool import CallState, ToolCall

log = logging.getLogger(__name__)

_EVERY = [one.point for one in vars(observed).values() if isinstance(one, type) and hasattr(one, "point")]
TOLD = tuple([point for point in _EVERY if point == Thinking.point or not point.startswith(("session.", "loop."))])
POINTS = tuple([point for point in _EVERY if point not in TOLD])

REMEMBERED = 1000
"""Number of turns whose audience is remembered."""

Observer = Callable[[Mapping[str, Any]], object]
"""Takes one read-only mapping. Its return value is ignored; its exceptions are logged and counted."""
Shown = TypeVar("Shown", bound=Observed)


class Hooks:
    """The observers of each point, in order of registration."""

    def __init__(self) -> None:
        self._observers: dict[str, list[Callable[[Any], object]]] = {}
        self.failures: dict[str, int] = {}
        """Point → how often an observer there raised."""
        self.audiences: dict[str, str] = {}
        """Turn → its audience, until its utterances have been sent."""

    def register(self, point: str, observer: Observer) -> None:
        """Register an observer from outside, which is shown mappings. Raises: ValueError for an unknown point."""
        if point not in POINTS and point not in TOLD:
            raise ValueError(f"there is no hook {point!r}: one of {', '.join((*POINTS, *TOLD))}")
        observers = self._observers.setdefault(point, [])
        observers.append(lambda event: observer(MappingProxyType(asdict(event))))

    def listen(self, kind: type[Shown], listener: Callable[[Shown], object]) -> Callable[[], None]:
        """Register a listener of our own, which is shown the structs themselves. Returns what ends the listening."""
        self._observers.setdefault(kind.point, []).append(listener)

        def end() -> None:
            self._observers[kind.point].remove(listener)
            if not self._observers[kind.point]:
                del self._observers[kind.point]

        return end

    def has(self, point: str) -> bool:
        """Return whether a point has observers, so that callers build no data for nobody."""
        return point in self._observers

    def remember(self, turn: str, audience: str) -> None:
        """Remember the audience of a turn until its utterances have been sent."""
        if not self._observers:
            return
        self.audiences[turn] = audience
        if len(self.audiences) > REMEMBERED:
            del self.audiences[next(iter(self.audiences))]

    def emit(self, event: Observed) -> None:
        """Call every observer of an event's point. Never raises and does not wait."""
        for observer in tuple(self._observers.get(event.point, ())):
            try:
                observer(event)
            except Exception:  # an observer may be the owner's own code, and must not cost a turn
                self.failures[event.point] = self.failures.get(event.point, 0) + 1
                log.exception("an observer failed", extra={"hook": event.point})


SAID = (Kind.MESSAGE, Kind.MENTION, Kind.COMMAND)
"""The kinds of perception that count as a peer's message."""


def noted(recollection: Recollection, intent: Intent) -> Noted:
    """Return what a concluded turn adds to the ledger: messages heard, answers given; no private thought."""
    interactions: list[Interaction] = []
    texts = [
        one
        for one in recollection.perceptions
        if one.origin is Origin.EXTERNAL and one.kind in SAID and one.person and one.key not in intent.held
    ]
    person = recollection.perception.person
    who = recollection.speaker.person if recollection.speaker else person
    heard = "\n".join([one.text for one in texts])
    for place, one in enumerate(texts):  # each counts as a message, but the ledger's one line joins them all
        interactions.append(_line(recollection, one, who, "in", heard if place == 0 else one.text, one.at))
    said = "".join([utterance.body for utterance in intent.utterances])
    if said and who:
        told = "" if intent.tainted else said  # the cortex reads it, and would believe what a page said
        interactions.append(_line(recollection, recollection.perception, who, "out", told, recollection.now))
    extra = recollection.perception.extra
    reaction = None
    if isinstance(extra, ReactionExtra) and extra.turn:  # which of our turns it is about, and how it was meant
        reaction = extra.turn, 0 if extra.is_removed else leaning(recollection.perception.text)
    return Noted(
        interactions=tuple(interactions), proposal=intent.noted.proposal if intent.noted else None, reaction=reaction
    )


def _line(
    recollection: Recollection, perception: Perception, who: str, direction: Any, text: str, at: datetime
) -> Interaction:
    place = Place.of(perception.conversation)
    channel_type = "thread" if place.thread else "channel"
    if place.network == "terminal":
        channel_type = "terminal"
    elif perception.audience.startswith("private:"):
        channel_type = "dm"
    files = perception.extra.files if isinstance(perception.extra, MessageExtra) else ()
    return Interaction(
        peer_id=who,
        name=perception.name,
        is_bot=perception.is_bot,
        at=at,
        direction=direction,
        channel_type=channel_type,
        conversation=recollection.conversation,
        audience=recollection.audience,
        turn=recollection.turn,
        scope=scope(text, len(files)) if direction == "in" else 0,
        preview=" ".join(text.split())[:PREVIEW_CHARS],
    )


def show_heard(hooks: Hooks, known: Recollection) -> None:
    """Emit the perceptions that a lane has taken."""
    hooks.remember(known.turn, known.audience)
    for one in known.perceptions:
        seen: _Seen = {**_seen(known), "timestamp": one.at}
        if one.origin is Origin.INTERNAL:
            hooks.emit(InternalTaken(**seen, perception_id=one.key, kind=one.kind.value))
        elif hooks.has(MessageHeard.point):
            line = _line(known, one, known.speaker.person if known.speaker else one.person, "in", one.text, one.at)
            hooks.emit(
                MessageHeard(
                    **seen,
                    peer_id=line.peer_id,
                    direction=line.direction,
                    channel_type=line.channel_type,
                    scope=line.scope,
                    preview=line.preview,
                    event_id=one.key,
                )
            )


class _Seen(TypedDict):
    turn: str
    conversation: str
    audience: str
    timestamp: datetime


def _seen(known: Recollection) -> _Seen:
    return _Seen(turn=known.turn, conversation=known.conversation, audience=known.audience, timestamp=known.now)


def show_prompt(hooks: Hooks, recollection: Recollection, steps: Sequence[str], prompt: Prompt, model: str) -> None:
    """Emit the prompt that is about to be sent to the model."""
    seen = _seen(recollection)
    if hooks.has(SystemPromptBuilt.point):
        digest = sha256(prompt.system.encode("utf-8", "surrogatepass")).hexdigest()
        person = recollection.perception.person
        hooks.emit(SystemPromptBuilt(**seen, peer_id=person, system_sha256=digest, tail_chars=len(prompt.tail)))
    hooks.emit(HistoryBuilt(**seen, entries=len(prompt.history)))
    hooks.emit(ModelAsked(**seen, model=model, steps=tuple(steps)))


def show_tool(hooks: Hooks, call: ToolCall, at: datetime, began_s: float = 0.0) -> None:
    """Emit that a tool is about to be used or, with when it `began_s` by a steady clock, what became of it."""
    seen = _Seen(turn=call.turn, conversation=call.conversation, audience=call.audience, timestamp=at)
    about: dict[str, Any] = {**seen, "call": call.id, "tool": call.tool, "cls": call.cls.value}
    if not began_s:
        hooks.emit(ToolBegins(**about))
        return
    ms = round((monotonic() - began_s) * 1000)
    hooks.emit(ToolEnded(**about, state=call.state.value, ok=call.state is CallState.DONE, ms=ms))


def show_concluded(hooks: Hooks, recollection: Recollection, calls: Sequence[Call], said: Sequence[Utterance]) -> None:
    """Emit the usage of each model call of a turn, and what it says."""
    for call in calls:
        usage = call.usage
        hooks.emit(
            ModelAnswered(
                **_seen(recollection),
                model=call.model,
                tokens_in=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
                tokens_out=usage.output_tokens,
                stop_reason=call.stop_reason,
            )
        )
    for one in said:
        hooks.emit(UtteranceMade(**_seen(recollection), recipient=one.conversation, chars=len(one.body)))


def show_committed(hooks: Hooks, intent: Intent) -> None:
    """Emit the ledger entries after the commit."""
    if (moved := intent.changes.get("process")) and hooks.has(ProcessMoved.point):
        seen = _Seen(turn=intent.turn, conversation=intent.conversation, audience=intent.audience, timestamp=intent.at)
        hooks.emit(ProcessMoved(**seen, before=moved["from"], after=moved["to"]))
    if intent.noted is None:
        return
    for one in intent.noted.interactions:
        hooks.emit(InteractionRecorded(peer_id=one.peer_id, direction=one.direction, turn=one.turn, at=one.at))
    if made := intent.noted.proposal:
        hooks.emit(
            TurnAssessed(
                peer_id=made.peer_id, trust=made.trust, rationale=made.rationale, turn=intent.turn, at=intent.at
            )
        )


class ThoughtStream:
    """Emits the private sections of one reply as they grow. A piece that may begin a secret waits for the next one."""

    def __init__(self, hooks: Hooks, recollection: Recollection, secrets: Sequence[str]) -> None:
        self._hooks, self._seen, self._secrets = hooks, _seen(recollection), secrets
        self._held = Section(name="", text="")
        self._has_told = False

    def tell(self, section: Section) -> None:
        """Emit the next piece of a private section."""
        if section.name != self._held.name:
            self.end()
        text = blot(self._held.text + section.text, self._secrets)
        end = len(text) - _begun(text, self._secrets)
        self._held = replace(section, text=text[end:])
        self._emit(replace(section, text=text[:end]))

    def end(self) -> None:
        """Emit what was held back, because its section or the reply has ended."""
        self._emit(self._held)
        self._held = Section(name="", text="")

    def void(self) -> None:
        """Emit that the pieces emitted so far do not count."""
        self._held = Section(name="", text="")
        if self._has_told:
            self._has_told = False
            self._hooks.emit(Thinking(**self._seen, step="", verb="", text="", is_void=True))

    def _emit(self, piece: Section) -> None:
        if piece.text:
            self._has_told = True
            self._hooks.emit(Thinking(**self._seen, step=piece.name, verb=piece.verb or "", text=piece.text))


def _begun(text: str, secrets: Sequence[str]) -> int:
    """Return how many characters at the end of a text may be the beginning of a secret. Pure."""
    most = max(map(len, secrets), default=0)
    ends = range(1, min(most, len(text) + 1))
    return max((n for n in ends if any(secret.startswith(text[-n:]) for secret in secrets)), default=0)


def show_failure(hooks: Hooks, pending: Pending, failure: Failure, at: datetime, error: BaseException | None) -> None:
    """Emit a turn's failure; without an error, the turn still goes on.

    If it does not, what was told of its thoughts does not count.
    """
    where, audience = pending.perception.conversation, pending.perception.audience
    seen: _Seen = {"turn": pending.turn, "conversation": where, "audience": audience, "timestamp": at}
    kind, station = (type(error).__name__, "turn") if error else (failure.kind, "call")
    hooks.emit(TurnFailed(**seen, error=kind, station=station, detail=failure.line))
    if error and hooks.has(Thinking.point):
        hooks.emit(Thinking(**seen, step="", verb="", text="", is_void=True))


def show_sending(hooks: Hooks, utterance: Utterance, at: datetime, receipt: str | None = None) -> None:
    """Emit an utterance before it is sent or, with its receipt, after it was sent."""
    seen: _Seen = {
        "turn": utterance.turn,
        "conversation": utterance.conversation,
        "audience": hooks.audiences.get(utterance.turn, ""),  # forgotten, or from before this process
        "timestamp": at,
    }
    recipient, chars = utterance.conversation, len(utterance.body)
    if receipt is None:
        hooks.emit(SendBegins(**seen, recipient=recipient, chars=chars))
        return
    place = Place.of(utterance.conversation)
    hooks.emit(
        Sent(
            **seen,
            recipient=recipient,
            chars=chars,
            peer_id=utterance.person,
            direction="out",
            channel_type="terminal" if place.network == "terminal" else "thread" if place.thread else "channel",
            receipt=receipt,
        )
    )
