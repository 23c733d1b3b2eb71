"""Shows a Discord server's trace to the oracle, in the oracle's words. Pure."""

from collections.abc import Callable, Mapping, Sequence

from lab import oracle
from lab.loopback.discord.records import Entry
from lab.loopback.discord.state import GUILD


def as_world(
    trace: Sequence[Entry],
    *,
    parents: Mapping[str, str],
    channels: Sequence[str],
    keys: Mapping[str, str],
    is_owed: Callable[[Entry], bool],
) -> oracle.World:
    """Give what people posted and what became visible, oldest first.

    `parents` has the channel of each thread; what stands in none of the `channels`, nor in a thread, stands in a DM.
    `keys` has the key of each part by the nonce that its post carries; `is_owed` decides which posts are owed a reply.
    What a person took down again may be unheard.
    """
    gone = {entry.message for entry in trace if entry.by == "person" and entry.kind == "delete"}

    def place(entry: Entry, thread: str) -> str:
        if entry.channel in parents:
            return f"discord:{GUILD}:{parents[entry.channel]}:{entry.channel}"
        return f"discord:{GUILD}:{entry.channel}:{thread}" if entry.channel in channels else dm(entry)

    posted = [
        oracle.Posted(
            key=f"discord:{entry.message}",
            conversation=place(entry, entry.message),
            position=entry.message.zfill(20),
            is_owed=is_owed(entry),
            may_be_unheard=entry.message in gone,
        )
        for entry in trace
        if entry.by == "person" and entry.kind == "post"
    ]
    visible = [
        oracle.Visible(
            conversation=place(entry, entry.reference), text=entry.text, key=keys.get(entry.nonce, entry.nonce)
        )
        for entry in trace
        if entry.by == "app" and entry.kind == "post"
    ]
    return oracle.World(posted=posted, visible=visible)


def dm(entry: Entry) -> str:
    """Name the conversation of a direct message."""
    return f"discord:@me:{entry.channel}:"
