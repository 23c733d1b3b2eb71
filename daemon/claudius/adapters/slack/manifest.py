"""What is known of Slack without its library: the app manifest, and the error codes that Slack documents.

The manifest tells Slack everything that lets Claudius hear and speak; Slack's form accepts it unchanged.

Source: docs.slack.dev/reference/app-manifest; the chat design, section 1.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCOPES: Mapping[str, str] = {
    "app_mentions:read": "hear that it is mentioned",
    "channels:history": "hear and read the public channels that it is in",
    "groups:history": "the private ones",
    "im:history": "direct messages",
    "mpim:history": "group messages",
    "channels:read": "see who is in a public channel",
    "groups:read": "in a private one",
    "im:read": "in a direct message",
    "mpim:read": "in a group message",
    "im:write": "begin a direct message",
    "users:read": "see names, and who is a guest",
    "chat:write": "speak, and show that it thinks",
    "commands": "take slash commands",
    "reactions:read": "see reactions",
    "reactions:write": "show that it thinks, in a direct message",
    "files:read": "read files that it is shown",
}
"""What the bot may do, and why."""

EVENTS = (
    "app_mention", "message.channels", "message.groups", "message.im", "message.mpim", "reaction_added",
    "reaction_removed", "member_joined_channel", "member_left_channel", "channel_left", "group_left",
    "channel_archive", "group_archive", "app_home_opened", "tokens_revoked", "app_uninstalled",
)  # fmt: skip

COMMANDS: Mapping[str, tuple[str, str]] = {
    "/claudius": ("your own memory: what I know of you, and why I said something", "whoami | why | forget me"),
    "/ensoul": ("whether I listen in this channel", "on | off | listen | status"),
}
"""Each slash command, with its purpose and its usage."""


def manifest(name: str = "Claudius") -> dict[str, Any]:
    """Return the manifest of an app of that name. Pure."""
    return {
        "_metadata": {"major_version": 1},
        "display_information": {
            "name": name,
            "description": "A soul that lives in your chat.",
            "background_color": "#2b2a33",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": True,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": name, "always_online": True},
            "slash_commands": [
                {"command": command, "description": about, "usage_hint": usage, "should_escape": True}
                for command, (about, usage) in COMMANDS.items()
            ],
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {"bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True},
            "org_deploy_enabled": False,
            "socket_mode_enabled": True,
            "token_rotation_enabled": False,
        },
    }


CODES = frozenset(
    {
        *("fatal_error", "internal_error", "service_unavailable", "request_timeout", "team_added_to_org"),
        *("org_level_error", "ratelimited", "rate_limited", "message_limit_exceeded", "accesslimited", "invalid_auth"),
        *("not_authed", "account_inactive", "token_revoked", "token_expired", "no_permission", "org_login_required"),
        *("ekm_access_denied", "two_factor_setup_required", "not_allowed_token_type", "invalid_arguments"),
        *("invalid_arg_name", "no_text", "unknown_argument"),
        *("channel_not_found", "not_in_channel", "is_archived", "is_inactive", "msg_too_long", "msg_blocks_too_long"),
        *("thread_not_found", "message_not_found", "no_item_specified", "bad_timestamp", "restricted_action"),
        *("restricted_action_read_only_channel", "restricted_action_thread_only_channel", "as_user_not_supported"),
        *("restricted_action_non_threadable_channel", "restricted_action_thread_locked", "channel_type_not_supported"),
        *("missing_scope", "access_denied", "method_not_supported_for_channel_type", "cannot_reply_to_message"),
        *("already_reacted", "no_reaction", "invalid_name", "too_many_emoji", "too_many_reactions", "not_allowed"),
        *("cant_delete_message", "cant_update_message", "edit_window_closed", "compliance_exports_prevent_deletion"),
        *("user_not_found", "user_not_visible", "user_is_bot", "user_not_in_channel", "users_not_found"),
        *("user_disabled", "cannot_dm_bot", "im_not_found", "messages_tab_disabled", "feature_not_enabled"),
        *("invalid_blocks", "invalid_blocks_format", "invalid_metadata_format", "invalid_metadata_schema"),
        *("metadata_must_be_sent_from_app", "metadata_too_large", "invalid_cursor", "invalid_limit"),
        *("invalid_ts_latest", "invalid_ts_oldest", "invalid_charset", "invalid_form_data", "invalid_post_type"),
        *("invalid_json", "json_not_object", "missing_post_type", "missing_argument", "limit_required"),
        *("deprecated_endpoint", "method_deprecated", "unknown_method", "too_many_attachments", "team_not_found"),
        *("file_not_found", "file_deleted", "view_too_large", "expired_trigger_id", "exchanged_trigger_id"),
        *("invalid_trigger_id", "trigger_exchanged", "socket_mode_not_enabled", "link_disabled"),
        *("internal_link_disabled", "app_not_installed", "invalid_app", "team_access_not_granted"),
        *("enterprise_is_restricted", "external_channel_migrating", "streaming_mode_mismatch"),
        *("message_not_in_streaming_state", "duplicate_channel_not_found", "duplicate_message_not_found"),
    }
)
