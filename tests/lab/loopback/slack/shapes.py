"""How people, conversations, messages and files look in Slack's JSON. Pure.

Source: docs.slack.dev/reference/objects and the example answers of docs.slack.dev/reference/methods.
"""

from typing import Any

from lab.loopback.slack.state import APP, BOT_USER, TEAM, Channel, File, Message, User, Workspace

TOMBSTONE = "This message was deleted."


def user_json(user: User, *, has_locale: bool = False) -> dict[str, Any]:
    """Show a person as `users.info` does; the locale only where `include_locale` asks for it."""
    shown = user.display_name or user.real_name or user.name
    found: dict[str, Any] = {
        "id": user.id,
        "team_id": user.team,
        "name": user.name,
        "deleted": user.deleted,
        "tz": user.tz,
        "updated": 1_700_000_000,
        "profile": {
            "real_name": user.real_name or user.name,
            "real_name_normalized": user.real_name or user.name,
            "display_name": user.display_name,
            "display_name_normalized": shown,
            "team": user.team,
        },
        "is_bot": user.is_bot,
        "is_app_user": False,
    }
    if has_locale:
        found["locale"] = user.locale
    if user.bot_id:
        found["profile"] |= {"bot_id": user.bot_id, "api_app_id": APP if user.id == BOT_USER else ""}
    if user.is_stranger or user.team != TEAM:
        found["is_stranger"] = user.is_stranger
    if user.deleted:  # a deactivated person has none of the flags; Source: docs.slack.dev/reference/objects/user-object
        return found
    return found | {
        "real_name": user.real_name or user.name,
        "is_admin": user.is_admin,
        "is_owner": user.is_owner,
        "is_primary_owner": False,
        "is_restricted": user.is_restricted or user.is_ultra_restricted,
        "is_ultra_restricted": user.is_ultra_restricted,
    }


def channel_json(channel: Channel) -> dict[str, Any]:
    """Show a conversation as `conversations.info` does."""
    found: dict[str, Any] = {
        "id": channel.id,
        "created": 1_700_000_000,
        "is_archived": channel.is_archived,
        "is_im": channel.kind == "im",
        "is_mpim": channel.kind == "mpim",
        "is_org_shared": False,
    }
    if channel.kind == "im":
        other = next((member for member in channel.members if member != BOT_USER), BOT_USER)
        return found | {"user": other, "is_user_deleted": False, "is_open": True}
    return found | {
        "name": channel.name,
        "name_normalized": channel.name,
        "creator": channel.members[0] if channel.members else "",
        "context_team_id": TEAM,
        "is_channel": channel.kind == "channel",
        "is_group": channel.kind == "group",
        "is_private": channel.kind != "channel",
        "is_general": channel.name == "general",
        "is_shared": channel.is_shared,
        "is_ext_shared": channel.is_shared,
        "is_member": BOT_USER in channel.members,
        "num_members": len(channel.members),
    }


def message_json(space: Workspace, message: Message, *, url: str, has_metadata: bool = False) -> dict[str, Any]:
    """Show a message as history does; the first of a thread with its counts.

    That metadata are left out unless they are asked for (`include_all_metadata`) is our reading.
    """
    found: dict[str, Any] = {"type": "message", "text": message.text, "ts": message.ts}
    facts = {
        "subtype": message.subtype,
        "user": message.user,
        "team": message.team if message.user else None,
        "client_msg_id": message.client_msg_id,
        "bot_id": message.bot_id,
        "app_id": APP if message.bot_id and message.user in (None, BOT_USER) else None,
        "username": message.username,
        "thread_ts": message.thread_ts,
        "blocks": message.blocks,
        "attachments": message.attachments,
        "metadata": message.metadata if has_metadata else None,
    }
    found |= {name: value for name, value in facts.items() if value}
    if message.subtype == "tombstone":
        found["hidden"] = True
    if message.files:
        found["files"] = [file_json(space.files[file], url=url) for file in message.files]
    if message.edited:
        found["edited"] = {"user": message.edited[0], "ts": message.edited[1]}
    if message.reactions:
        found["reactions"] = [
            {"name": name, "users": users, "count": len(users)} for name, users in message.reactions.items()
        ]
    return found | _thread_json(space.channels[message.channel], message) | message.fields


def _thread_json(channel: Channel, message: Message) -> dict[str, Any]:
    if message.is_reply:
        parent = channel.find(message.thread_ts or "")
        return {"parent_user_id": parent.user} if parent else {}
    replies = channel.replies(message.ts)
    if not replies:
        return {}
    users = list(dict.fromkeys(reply.user or reply.bot_id or "" for reply in replies))
    return {
        "thread_ts": message.ts,
        "reply_count": len(replies),
        "reply_users": users,
        "reply_users_count": len(users),
        "latest_reply": replies[-1].ts,
        "is_locked": False,
        "subscribed": BOT_USER in users,
    }


def file_json(file: File, *, url: str, is_asked: bool = False) -> dict[str, Any]:
    """Show a file; one from Slack Connect whole only where it `is_asked` for by `files.info`.

    Source: docs.slack.dev/reference/objects/file-object, "check_file_info".
    """
    if file.is_connect and not is_asked:
        return {"id": file.id, "mode": "file_access", "file_access": "check_file_info", "created": file.created}
    private = f"{url}/files-pri/{TEAM}-{file.id}"
    return {
        "id": file.id,
        "created": file.created,
        "name": file.name,
        "title": file.name,
        "mimetype": file.mimetype,
        "filetype": file.name.rpartition(".")[2],
        "user": file.user,
        "size": len(file.content),
        "mode": "hosted",
        "is_external": False,
        "file_access": "visible",
        "url_private": f"{private}/{file.name}",
        "url_private_download": f"{private}/download/{file.name}",
    } | file.fields
