"""What can be set about the Discord server; the defaults are the real service's figures where one is known."""

from dataclasses import dataclass
from typing import Literal

Privilege = Literal["guild_members", "guild_presences", "message_content"]


@dataclass(slots=True)
class Settings:
    """Every figure of the service; a test sets the long ones short."""

    heartbeat_ms: int = 41_250
    """Source: docs.discord.com/developers/events/gateway, the example of `hello`."""
    heartbeats_missed: float = 2.0
    """So many intervals without a heartbeat, and the server closes the socket. Our reading."""
    session_life_s: float = 300.0
    """How long a session outlives its socket. Source: the same page: it will "timeout after a few minutes"."""
    buffer_events: int = 1_000
    """So many events can be replayed. Our reading."""
    identify_every_s: float = 5.0
    """Source: the same page, `max_concurrency`: identifies per 5 seconds; an early one gets an invalid session. A test
    that restarts its client at once sets 0."""
    session_starts: int = 1_000
    session_starts_within_s: float = 86_400.0
    """Source: the same page, "limited to 1000 IDENTIFY calls … in a 24-hour period"; then all sessions end and the
    token is reset."""
    privileges: frozenset[Privilege] = frozenset({"message_content"})
    """The privileged intents that are switched on in the developer portal."""
    nonce: Literal["honoured", "ignored"] = "honoured"
    """What becomes of `enforce_nonce`."""
    nonce_life_s: float = 180.0
    """Source: docs.discord.com/developers/resources/message, "unique in the past few minutes"; the figure is ours."""
    is_content_trimmed: bool = True
    """Blanks around a text are cut off. Our reading, from what clients see."""
    content_chars: int = 2_000
    """Source: the same page. That UTF-16 units are counted is our reading: the stricter of the two."""
    interaction_deadline_s: float = 3.0
    interaction_life_s: float = 900.0
    """Source: docs.discord.com/developers/interactions/receiving-and-responding: within 3 seconds; 15 minutes."""
    cdn_life_s: float = 86_400.0
    """How long the URL of a file is good. Source: docs.discord.com/developers/reference, "Signed Attachment CDN URLs";
    the figure is what people meet."""
    has_rate_limits: bool = False
    global_calls_per_s: int = 50
    """Source: docs.discord.com/developers/topics/rate-limits."""
