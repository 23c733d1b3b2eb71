"""Shows a Slack server's trace to the oracle, in the oracle's words. Pure."""

from collections.abc import Callable, Sequence

from lab import oracle
from lab.loopback.slack.records import Entry
from lab.loopback.slack.state import TEAM


def as_world(trace: Sequence[Entry], *, is_owed: Callable[[Entry], bool], key: str = "key") -> oracle.World:
    """Give what people posted and what became visible, oldest first.

    `is_owed` decides which posts are owed a reply; `key` is the name under which our posts carry their own, in the
    payload of their metadata. What a person took down again may be unheard.
    """
    gone = {entry.ts for entry in trace if entry.by == "person" and entry.kind == "delete"}
    posted = [
        oracle.Posted(
            key=f"slack:{TEAM}:{entry.channel}:{entry.ts}",
            conversation=place(entry),
            position=entry.ts,
            is_owed=is_owed(entry),
            may_be_unheard=entry.ts in gone,
        )
        for entry in trace
        if entry.by == "person" and entry.kind == "post"
    ]
    visible = [
        oracle.Visible(conversation=place(entry), text=entry.text, key=_key(entry, key))
        for entry in trace
        if entry.by == "app" and entry.kind == "post"
    ]
    return oracle.World(posted=posted, visible=visible)


def place(entry: Entry) -> str:
    """Name the conversation of a message: a DM, or the thread that it is in or begins."""
    if entry.channel.startswith("D"):
        return f"slack:{TEAM}:{entry.channel}:"
    return f"slack:{TEAM}:{entry.channel}:{entry.thread_ts or entry.ts}"


def _key(entry: Entry, name: str) -> str:
    payload = (entry.metadata or {}).get("event_payload") or {}
    return str(payload.get(name, f"{entry.channel}:{entry.ts}"))
