"""What can be set about the Slack server, and its clock; the defaults are the real service's figures."""

from dataclasses import dataclass
from typing import Literal

MANIFEST_EVENTS = frozenset(
    {
        "app_mention", "message.channels", "message.groups", "message.im", "message.mpim", "reaction_added",
        "reaction_removed", "member_joined_channel", "member_left_channel", "channel_left", "group_left",
        "channel_archive", "group_archive", "app_home_opened", "tokens_revoked", "app_uninstalled",
    }
)  # fmt: skip
"""The events of the app's manifest, all subscribed unless set otherwise."""


@dataclass(slots=True)
class Settings:
    """Every figure of the service; a test sets the long ones short."""

    ack_deadline_s: float = 3.0
    """Source: docs.slack.dev/apis/events-api, "respond within three seconds"."""
    retry_delays_s: tuple[float, ...] = (0.0, 60.0, 300.0)
    """Source: docs.slack.dev/apis/events-api, "Error handling": nearly at once, after 1 minute, after 5 minutes."""
    offline: Literal["retry", "lose"] = "retry"
    """What becomes of an event while no socket is open. Reports differ: it comes again as a retry (vercel/chat#666), or
    never (openclaw#55792). In both, an event whose tries are spent is lost."""
    ticket_life_s: float = 30.0
    """Our reading: tickets are single-use and short-lived; no page gives the figure."""
    max_sockets: int = 10
    """Source: docs.slack.dev/apis/events-api/using-socket-mode, "up to 10"."""
    connection_s: float = 18060.0
    """How long a socket lasts; `hello` promises it as `approximate_connection_time`."""
    refresh_grace_s: float = 10.0
    """From the warning to `refresh_requested` (the same page, "about 10 seconds"), and from there to the close (our
    reading)."""
    ping_s: float = 5.0
    """Between the server's own pings; 0 = none. Our reading."""
    status_life_s: float = 120.0
    """Source: docs.slack.dev/reference/methods/assistant.threads.setStatus, "a two minute timeout applies"."""
    response_life_s: float = 1800.0
    response_uses: int = 5
    """Source: docs.slack.dev/interactivity/handling-user-interaction: 5 times within 30 minutes."""
    is_sparing: bool = False
    """Leave out what a client cannot count on: a post's answer tells no ts, the history shows no metadata, an event
    names neither its own time nor whose message it is about, a command has no `response_url`."""
    is_mention_first: bool = False
    """Which of the pair comes first when our app is mentioned; the real order is not promised."""
    has_rate_limits: bool = False
    events: frozenset[str] = MANIFEST_EVENTS
    """The bot events that the app is subscribed to; a missing one is the most common setup fault."""
