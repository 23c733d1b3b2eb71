"""The Web API's methods: which token and scopes they take, which arguments, and how often they may be called.

Source of each row: docs.slack.dev/reference/methods/<method>, whose errors the methods here raise by the same names.
"""

from __future__ import annotations

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
    optional: tuple[str, ...] = ()
    kind: Literal["bot", "app"] = "bot"


def _rule(scopes: str, tier: int, required: str = "", optional: str = "", kind: Literal["bot", "app"] = "bot") -> Rule:
    """Read a row. Source of the tiers' figures: docs.slack.dev/apis/web-api/rate-limits."""
    per_minute = (0, 1, 20, 50, 100, 600)[tier]
    return Rule(tuple(scopes.split()), per_minute, tuple(required.split()), tuple(optional.split()), kind)


_TEXT = "text markdown_text blocks attachments metadata parse link_names reply_broadcast"
_FACE = "username icon_emoji icon_url"
_PAGE = "cursor limit team_id"
_SPAN = "cursor limit oldest latest inclusive include_all_metadata"
_POST = f"{_TEXT} {_FACE} thread_ts as_user mrkdwn unfurl_links unfurl_media container_id"

METHODS: Mapping[str, Rule] = {
    "api.test": _rule("", 4, "", "error foo"),
    "auth.test": _rule("", 5),
    "apps.connections.open": _rule("connections:write", 1, kind="app"),
    "chat.postMessage": _rule("chat:write", 5, "channel", _POST),
    "chat.postEphemeral": _rule("chat:write", 4, "channel user", f"{_TEXT} {_FACE} thread_ts as_user"),
    "chat.update": _rule("chat:write", 3, "channel ts", f"{_TEXT} as_user file_ids unfurled_attachments"),
    "chat.delete": _rule("chat:write", 3, "channel ts", "as_user"),
    "chat.startStream": _rule(
        "chat:write", 2, "channel thread_ts",
        f"markdown_text chunks recipient_team_id recipient_user_id task_display_mode {_FACE}",
    ),
    "chat.appendStream": _rule("chat:write", 4, "channel ts", "markdown_text chunks"),
    "chat.stopStream": _rule("chat:write", 2, "channel ts", "markdown_text chunks blocks metadata session_status"),
    "assistant.threads.setStatus": _rule(
        "assistant:write chat:write", 5, "channel_id thread_ts status", f"loading_messages {_FACE}"
    ),
    "conversations.list": _rule("", 2, "", f"types exclude_archived {_PAGE}"),
    "conversations.info": _rule("", 3, "channel", "include_locale include_num_members"),
    "conversations.members": _rule("", 4, "channel", _PAGE),
    "conversations.history": _rule("", 3, "channel", _SPAN),
    "conversations.replies": _rule("", 3, "channel ts", _SPAN),
    "conversations.open": _rule("im:write mpim:write", 3, "", "channel users return_im prevent_creation"),
    "conversations.join": _rule("channels:join", 3, "channel"),
    "users.info": _rule("users:read", 4, "user", "include_locale"),
    "users.list": _rule("users:read", 2, "", f"include_locale {_PAGE}"),
    "users.conversations": _rule("", 3, "", f"user types exclude_archived {_PAGE}"),
    "reactions.add": _rule("reactions:write", 3, "channel timestamp name"),
    "reactions.remove": _rule("reactions:write", 2, "name", "channel timestamp file file_comment"),
    "files.info": _rule("files:read", 4, "file", f"count page {_PAGE}"),
    "views.publish": _rule("", 4, "user_id view", "hash"),
}  # fmt: skip

HISTORY_SCOPE = {
    "channel": "channels:history",
    "group": "groups:history",
    "im": "im:history",
    "mpim": "mpim:history",
}
READ_SCOPE = {"channel": "channels:read", "group": "groups:read", "im": "im:read", "mpim": "mpim:read"}

EVENT_SCOPE: Mapping[str, str] = {
    "app_mention": "app_mentions:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "message.mpim": "mpim:history",
    "reaction_added": "reactions:read",
    "reaction_removed": "reactions:read",
    "channel_left": "channels:read",
    "group_left": "groups:read",
    "channel_archive": "channels:read",
    "group_archive": "groups:read",
}
"""The scope without which an event is not sent. Source: docs.slack.dev/reference/events/<event>."""

TEXT_CHARS = 40_000
"""Source: docs.slack.dev/reference/methods/chat.postMessage, "Truncating content": more is cut, with a warning."""
UPDATE_CHARS = 4_000
"""Source: docs.slack.dev/reference/methods/chat.update, `msg_too_long`."""
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


def check(method: str, arguments: Arguments, *, is_strict: bool) -> list[str]:
    """Name the arguments that the method does not have. Raises: Refused: a required one is missing.

    One that is there but empty is refused later, by what it fails to name. Source: measured, brekkylab/backlot#84.
    """
    rule = METHODS[method]
    if missing := [name for name in rule.required if name not in arguments]:
        raise Refused("invalid_arguments", *(f"missing required field: {name}" for name in missing))
    unknown = sorted(arguments.keys() - {*rule.required, *rule.optional, "token", "team_id"})
    if unknown and is_strict:
        raise Refused("invalid_arguments", *(f"unknown argument: {name}" for name in unknown))
    return unknown
