"""The interface to every tool: what it is, one call with its states, and the door through which a turn has it done.

A tool is a named act whose result comes back into the turn. Only `runtime/hands.py` starts one; cognition sees `Hands`.
Source: the tools design, sections 2 to 7 and 15.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

from msgspec import Struct, field

TIMED_OUT = "no answer in time"
"""Why a call has no result: its tool was silent for too long."""
JSON = Mapping[str, Any]
"""Arguments by name, or a JSON schema."""


class ToolClass(StrEnum):
    """What a tool may do; the owner's word, never the server's."""

    LOOK = "look"
    """Pure, or the soul's own memory under the audience rule; asks never."""
    READ = "read"
    """Fetches, changes nothing; asks the first time in a conversation."""
    WRITE = "write"
    """Changes what can be undone; asks each time."""
    SEND = "send"
    """Reaches others, pays, deletes, runs; asks each time, with its arguments in full."""

    @property
    def is_safe(self) -> bool:
        """Whether a call without an answer has done no harm: it failed, and may be made again."""
        return self in (ToolClass.LOOK, ToolClass.READ)


class CallState(StrEnum):
    """Where one call of a tool stands; the last five are final."""

    WAITING = "waiting"
    APPROVED = "approved"
    STARTED = "started"
    REFUSED = "refused"
    LAPSED = "lapsed"
    WITHDRAWN = "withdrawn"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Started, and nobody knows whether it happened; never repeated by us."""

    @property
    def is_final(self) -> bool:
        """Whether nothing follows."""
        return self not in (CallState.WAITING, CallState.APPROVED, CallState.STARTED)


class ToolCall(Struct, frozen=True, kw_only=True):
    """One use of a tool: a row of `tool_call`."""

    id: str
    """`TURN/N`, N from 0 in the order of the turn's calls; a re-run of the turn gives the same ids."""
    turn: str
    conversation: str
    audience: str
    person: str
    """Who asked; empty = nobody."""
    is_owner: bool = False
    """Whether that was the home's owner at their own terminal."""
    tool: str
    cls: ToolClass
    third: bool = False
    """Whether its result is third-party text, which taints the prompt that shows it."""
    args: JSON
    pin: str = ""
    state: CallState = CallState.WAITING
    reason: str = ""
    """Why it asks, or was refused, in one line."""
    approvers: tuple[str, ...] = ()
    """The canonical ids of those who may decide it."""
    allowed_by: str = ""
    """Who allowed it, or the rule: `look`, `typed`."""
    grant: int = 0
    """The remembered consent under which it runs; 0 = none."""
    asked_at: datetime | None = None
    until: datetime | None = None
    """When the question lapses."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: int = 0
    result: str = ""
    """What the model is shown: cut and masked before it was stored."""
    told_turn: str = ""
    """The later turn that told its end; empty = none did, or its own turn knew it."""


Runner = Callable[[JSON, ToolCall], Awaitable[str]]
"""Does the tool, as the call says; returns its result as text. Raises: ToolError."""


class Tool(Struct, frozen=True, kw_only=True):
    """One tool as it is offered."""

    name: str
    """`clock`, or `SERVER.NAME`."""
    purpose: str
    """One sentence, at most 120 characters, for the prompt."""
    cls: ToolClass
    schema: JSON
    """The JSON schema of its arguments, an object without additional keys."""
    run: Runner
    ready: Callable[[], Awaitable[None]] | None = None
    """Has its server run; None = there is nothing to wait for. Raises: ToolError."""
    source: Literal["built-in", "own", "server"] = "built-in"
    where: tuple[str, ...] = ()
    """`owner`: conversations that only owners see; `private`; or ids of channels; empty = everywhere."""
    pin: str = ""
    """The sha256 of the definition that the owner agreed to; empty = ours."""
    is_mine: bool = False
    """Whether its results are the owner's own words, which taint nothing."""
    key_arg: str = ""
    """The argument that takes the call's id as idempotency key; hidden from the model. Empty = it has none."""
    timeout_s: float = 0.0
    """The longest one call may take; 0 = the setting's."""
    off: str = ""
    """Why it cannot be used now, in one line: its server is down, its definition changed; empty = it can."""


Scope = Literal["talk", "channel", "always"]
"""How far a remembered consent reaches."""


def may_remember(cls: ToolClass, audience: str) -> tuple[Scope, ...]:
    """Return how far a consent to a tool may be remembered, at most, among who sees `audience`. Pure."""
    if cls is ToolClass.READ:
        return ("talk", "channel", "always")
    return ("talk",) if cls is ToolClass.WRITE and audience.startswith("private:") else ()


class Grant(Struct, frozen=True, kw_only=True):
    """A remembered consent."""

    id: int
    tool: str
    pin: str
    scope: Scope
    person: str
    """Whose talk it is for; empty = everybody in the conversation."""
    conversation: str
    """Empty = everywhere (`always`)."""
    granted_by: str
    granted_at: datetime
    expires_at: datetime


class Card(Struct, frozen=True, kw_only=True):
    """A question for consent, as adapters show it; written by code from the row."""

    call: str
    tool: str
    cls: ToolClass
    question: str
    """`May I read https://example.org/a? (web.read, until Thursday 9:12)`."""
    args: str
    """The arguments as JSON lines."""
    approvers: tuple[str, ...]
    who: str
    """Who may decide, by name."""
    until: datetime
    for_talk: bool = False
    """Whether it may be allowed for the talk; of class `read` that is the first button."""
    verdict: str = ""
    """Once decided, the line that stands in place of the buttons: `Allowed by Oz.`"""

    @property
    def buttons(self) -> tuple[tuple[str, str], ...]:
        """What may be pressed, the first thing first: a verb, and what stands on it."""
        once, talk, no = ("allow", "Allow"), ("talk", "Allow for this talk"), ("deny", "No")
        if not self.for_talk:
            return once, no
        return (talk, once, no) if self.cls is ToolClass.READ else (once, talk, no)

    @property
    def told(self) -> str:
        """Who may decide it and how, as it stands below the arguments; once decided, the verdict."""
        thumbs = "" if self.cls is ToolClass.SEND else "👍 or 👎, or "
        return self.verdict or f"Only {self.who} may decide this: by a button, {thumbs}with !allow and !deny."

    @property
    def text(self) -> str:
        """The question as plain text, with how to answer it, for a network without a form of its own."""
        talk = f", !allow {self.call} talk" if self.for_talk else ""
        how = f"{self.who} may say: !allow {self.call}{talk}, !deny {self.call}"
        return "\n".join(filter(None, (self.question, self.args, self.verdict or how)))


class Onlookers(Struct, frozen=True, kw_only=True):
    """Who can see a conversation now, by canonical id, as far as consent depends on it."""

    people: frozenset[str] | None = None
    """None = it is not known of everybody."""
    owners: frozenset[str] = frozenset()
    """The owners of whom it is known that they can."""

    @property
    def are_owners(self) -> bool:
        """Whether nobody but owners can see it."""
        return bool(self.people) and self.people is not None and self.people <= self.owners


class Runs(Struct, frozen=True):
    """The call may run now."""

    reason: str
    """`look`, `grant`, `typed`."""
    grant: int = 0


class Asks(Struct, frozen=True):
    """The call must be asked for."""

    approvers: tuple[str, ...]
    why: str = ""


class Refuses(Struct, frozen=True):
    """The call is not made; the model is told why."""

    why: str


Decision = Runs | Asks | Refuses


class Hands(Protocol):
    """The door through which a turn has tools done; `runtime/hands.py` is it."""

    def offered(self) -> Sequence[Tool]:
        """Return every tool, by name, also those that are `off`; each the same object until it changes."""

    async def onlookers(self, audience: str, speaker: str, *, anew: bool) -> Onlookers:
        """Return who can see what is said to an audience, `speaker` among them; `anew`: its network is asked now."""

    async def do(self, call: ToolCall, tool: Tool) -> ToolCall:
        """Do an approved call, or go on with one that an earlier run began; return it as it stands.

        Durable before the first byte leaves. Its state is `started` if it takes longer than a turn may: then it goes
        on by itself, and its result comes as a perception of its own.
        """


class ToolServers(Protocol):
    """Servers of tools, as the process that has some sees them."""

    def problems(self) -> Mapping[str, str]:
        """Return what the owner is told of each server that cannot be used as agreed."""

    async def close(self) -> None:
        """End every server."""


def tool(purpose: str, *, cls: str = "send", **rest: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function as a tool of the owner's own: `[tools.own] NAME = "package.module:function"`.

    Its arguments are its parameters, annotated with `str`, `int`, `float` or `bool`; it returns what is shown. One that
    is not async runs in a thread. `cls`: `look`, `read`, `write` or `send`.
    """

    def marked(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__tool__ = {"purpose": purpose, "cls": ToolClass(cls), **rest}  # type: ignore[attr-defined]  # a mark of ours on theirs
        return function

    return marked


_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of(function: Callable[..., Any]) -> JSON:
    """Return the JSON schema of a function's parameters. Pure. Raises: TypeError for one that JSON cannot hold."""
    properties, required = {}, []
    for name, one in inspect.signature(function, eval_str=True).parameters.items():
        kind = _TYPES.get(one.annotation)
        if kind is None:
            raise TypeError(f"the parameter {name} is not annotated with str, int, float or bool")
        properties[name] = {"type": kind}
        if one.default is inspect.Parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


class ToolStep(Struct, frozen=True, kw_only=True):
    """What happened to one request for a tool within a turn, for `why` and the history."""

    id: str
    tool: str
    args: JSON = field(default_factory=dict)
    state: str = ""
    """A `CallState`, or `bad_args`, `repeated`, `refused`, `refused: limit`."""
    text: str = ""
    """What the model was shown of it."""
    third: bool = False
    """Whether the text is a third party's."""
    written: str = ""
    """The request as it was written, if it could not be read."""


def cut(text: str, most: int) -> str:
    """Return at most about `most` characters of a text, three quarters from its head, the gap named. Pure."""
    if len(text) <= most:
        return text
    head = 3 * most // 4
    return (
        f"{text[:head]}\n[… {len(text) - most:,} characters are left out here …]\n{text[len(text) - (most - head) :]}"
    )
