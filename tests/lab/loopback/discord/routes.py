"""The paths of REST v10: their names, as Discord's documentation gives them, and what each does.

Source of the paths: docs.discord.com/developers/resources and …/interactions/receiving-and-responding.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.loopback.discord import routes_app, routes_channels, routes_interactions, routes_messages
from lab.loopback.discord.asking import Asking

Act = Callable[[Asking], tuple[int, Any]]

ACTS: Mapping[str, Act] = {
    **routes_app.ROUTES,
    **routes_channels.ROUTES,
    **routes_interactions.ROUTES,
    **routes_messages.ROUTES,
}


@dataclass(frozen=True, slots=True)
class Route:
    """One path. `top`: the parameter of the top-level resource, by which calls are counted."""

    name: str
    verb: str
    path: str
    needs_token: bool = True

    @property
    def top(self) -> str:
        """Name the parameter by which calls are counted apart. Source: docs …/topics/rate-limits."""
        first = self.path.split("/")[2:3]
        return first[0].strip("{}") if first and first[0] in ("{channel_id}", "{guild_id}", "{application_id}") else ""


_MESSAGES = "/channels/{channel_id}/messages"
_MESSAGE = "/channels/{channel_id}/messages/{message_id}"
_REACTION = "/channels/{channel_id}/messages/{message_id}/reactions/{emoji}"
_COMMANDS = "/applications/{application_id}/commands"
_GUILD_COMMANDS = "/applications/{application_id}/guilds/{guild_id}/commands"
_HOOK = "/webhooks/{application_id}/{token}"

TABLE: tuple[Route, ...] = (
    Route("get_current_user", "GET", "/users/@me"),
    Route("get_current_user_guilds", "GET", "/users/@me/guilds"),
    Route("create_dm", "POST", "/users/@me/channels"),
    Route("get_user", "GET", "/users/{user_id}"),
    Route("get_gateway_bot", "GET", "/gateway/bot"),
    Route("get_current_bot_application", "GET", "/oauth2/applications/@me"),
    Route("get_current_application", "GET", "/applications/@me"),
    Route("get_global_application_commands", "GET", _COMMANDS),
    Route("bulk_overwrite_global_application_commands", "PUT", _COMMANDS),
    Route("get_guild_application_commands", "GET", _GUILD_COMMANDS),
    Route("bulk_overwrite_guild_application_commands", "PUT", _GUILD_COMMANDS),
    Route("get_guild", "GET", "/guilds/{guild_id}"),
    Route("get_guild_channels", "GET", "/guilds/{guild_id}/channels"),
    Route("list_active_guild_threads", "GET", "/guilds/{guild_id}/threads/active"),
    Route("get_guild_roles", "GET", "/guilds/{guild_id}/roles"),
    Route("get_guild_member", "GET", "/guilds/{guild_id}/members/{user_id}"),
    Route("get_channel", "GET", "/channels/{channel_id}"),
    Route("trigger_typing_indicator", "POST", "/channels/{channel_id}/typing"),
    Route("get_channel_messages", "GET", _MESSAGES),
    Route("create_message", "POST", _MESSAGES),
    Route("get_channel_message", "GET", _MESSAGE),
    Route("edit_message", "PATCH", _MESSAGE),
    Route("delete_message", "DELETE", _MESSAGE),
    Route("start_thread_from_message", "POST", f"{_MESSAGE}/threads"),
    Route("create_reaction", "PUT", f"{_REACTION}/@me"),
    Route("delete_own_reaction", "DELETE", f"{_REACTION}/@me"),
    Route("get_thread_member", "GET", "/channels/{channel_id}/thread-members/{user_id}"),
    Route("join_thread", "PUT", "/channels/{channel_id}/thread-members/@me"),
    Route("create_interaction_response", "POST", "/interactions/{interaction_id}/{token}/callback", needs_token=False),
    Route("create_followup_message", "POST", _HOOK, needs_token=False),
)
