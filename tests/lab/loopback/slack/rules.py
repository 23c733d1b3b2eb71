"""The Web API's methods: which token and scopes they take, which arguments they need, and how often they may be called.

Source of each row: docs.slack.dev/reference/methods/<method>, whose errors the methods here raise by the same names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


class Refused(Exception):
    """The service says no: `ok: false` with this error."""

    def __init__(self, error: str, *messages: str, **facts: Any) -> None:
        super().__init__(error)
        self.error = error
        self.facts = facts
        if messages:
            self.facts["response_metadata"] = {"messages": [f"[ERROR] {message}" for message in messages]}


@dataclass(frozen=True, slots=True)
class Rule:
    """One method. `per_minute` is its tier, `kind` its token's; `scopes`: one of them, or none that is fixed."""

    scopes: tuple[str, ...]
    per_minute: int
    required: tuple[str, ...] = ()
    kind: Literal["bot", "app"] = "bot"


def _rule(scopes: str, tier: int, required: str = "", kind: Literal["bot", "app"] = "bot") -> Rule:
    """Read a row. Source of the tiers' figures: docs.slack.dev/apis/web-api/rate-limits."""
    per_minute = (0, 1, 20, 50, 100, 600)[tier]
    return Rule(tuple(scopes.split()), per_minute, tuple(required.split()), kind)


METHODS: Mapping[str, Rule] = {
    "auth.test": _rule("", 5),
    "apps.connections.open": _rule("connections:write", 1, kind="app"),
    "chat.postMessage": _rule("chat:write", 5, "channel"),
    "chat.postEphemeral": _rule("chat:write", 4, "channel user"),
    "chat.update": _rule("chat:write", 3, "channel ts"),
    "chat.delete": _rule("chat:write", 3, "channel ts"),
    "assistant.threads.setStatus": _rule("assistant:write chat:write", 5, "channel_id thread_ts status"),
    "conversations.list": _rule("", 2),
    "conversations.info": _rule("", 3, "channel"),
    "conversations.members": _rule("", 4, "channel"),
    "conversations.history": _rule("", 3, "channel"),
    "conversations.replies": _rule("", 3, "channel ts"),
    "users.info": _rule("users:read", 4, "user"),
    "users.list": _rule("users:read", 2),
    "users.conversations": _rule("", 3),
    "reactions.add": _rule("reactions:write", 3, "channel timestamp name"),
    "reactions.remove": _rule("reactions:write", 2, "name"),
    "files.info": _rule("files:read", 4, "file"),
    "views.publish": _rule("", 4, "user_id view"),
}

HISTORY_SCOPE = {"channel": "channels:history", "group": "groups:history", "im": "im:history", "mpim": "mpim:history"}
READ_SCOPE = {"channel": "channels:read", "group": "groups:read", "im": "im:read", "mpim": "mpim:read"}

EVENT_SCOPE: Mapping[str, str] = {
    "app_mention": "app_mentions:read", "message.channels": "channels:history", "message.groups": "groups:history",
    "message.im": "im:history", "message.mpim": "mpim:history", "reaction_added": "reactions:read",
    "reaction_removed": "reactions:read", "channel_left": "channels:read", "group_left": "groups:read",
    "channel_archive": "channels:read", "group_archive": "groups:read",
}  # fmt: skip
"""The scope without which an event is not sent. Source: docs.slack.dev/reference/events/<event>."""

TEXT_CHARS = 40_000
"""Source: docs.slack.dev/reference/methods/chat.postMessage, "Truncating content": more is cut, with a warning."""
MARKDOWN_CHARS = 12_000
"""Source: docs.slack.dev/reference/methods/chat.postMessage, "Limit this field to 12,000 characters"."""
SECTION_CHARS = 3_000
"""Source: docs.slack.dev/reference/block-kit/blocks/section-block."""
MAX_BLOCKS = 50
"""Source: docs.slack.dev/reference/block-kit/blocks, "up to 50 blocks in each message"."""


class Arguments(dict[str, Any]):
    """What a method was called with, from JSON, form or query."""

    def text(self, name: str) -> str:
        """Read a string; empty where there is none."""
        value = self.get(name)
        return "" if value is None else str(value)

    def flag(self, name: str) -> bool:
        """Read a boolean: JSON's own, or the words of a form."""
        return str(self.get(name, "")).lower() in ("1", "true", "yes")

    def number(self, name: str, default: int) -> int:
        """Read a whole number. Raises: Refused."""
        value = self.get(name)
        if value in (None, ""):
            return default
        try:
            return int(str(value))
        except ValueError:
            raise Refused("invalid_arguments", f"must be a number: {name}") from None


def check(method: str, arguments: Arguments) -> None:
    """Raises: Refused: a required argument is missing. One that is empty is refused later, by what it fails to name.

    Source: measured, brekkylab/backlot#84. Names that a method does not know it takes no notice of.
    """
    if missing := [name for name in METHODS[method].required if name not in arguments]:
        raise Refused("invalid_arguments", *(f"missing required field: {name}" for name in missing))
