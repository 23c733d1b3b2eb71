"""Shared by the tests of the Slack adapter: short waits in place of Slack's minutes, and what people see."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from claudius.adapters.slack.adapter import SlackAdapter
from claudius.adapters.slack.connection import SlackTimings
from claudius.cognition.conclude.conclusion import utterance_key
from claudius.intent import Utterance
from claudius.testing.alive import Alive
from lab.loopback.slack.world import SlackWorld

QUICK = SlackTimings(
    tick_s=0.02,
    ping_s=0.2,
    ticket_s=0.3,
    client_s=3.0,
    silent_s=3.0,
    deaf_s=0.3,
    spoke_s=60.0,
    arrives_s=0.1,
    again_s=0.1,
    transcribed_s=(0.0, *[0.05] * 100),
)
"""Slack's minutes in tenths of seconds."""

Make = Callable[..., SlackAdapter]
Wake = Callable[..., AbstractAsyncContextManager[Alive]]


async def said(slack: SlackWorld) -> list[tuple[str, str | None, str]]:
    """Return each message of ours that people see: channel, thread, text."""
    return [(one.channel, one.thread_ts, one.text) for one in await slack.visible()]


def reply(
    trigger: str, body: str = "hello", *, channel: str = "C1", thread: str | None = None, part: int = 0
) -> Utterance:
    """Return one part of a reply to the message `trigger`."""
    return Utterance(
        key=utterance_key("turn", part),
        turn="turn",
        conversation=f"slack:T1:{channel}:{trigger if thread is None else thread}",
        body=body,
        part=part,
        answers=(f"slack:T1:{channel}:{trigger}",),
        person="slack:T1:U1",
    )
