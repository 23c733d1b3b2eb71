"""The command `claudius` in a hurry, even with Slack's history, and a scripted voice that repeats what it answers."""

import runpy
import sys
from pathlib import Path

from claudius.adapters.slack import history
from claudius.provider import Request
from claudius.providers import scripted

_line = scripted.line


def echo(request: Request) -> str:
    """Repeat what was said."""
    text = request.tail.rpartition('"text":"')[2].partition('"')[0]
    return f"<internal_monologue>It was said.</internal_monologue>\n<external_dialogue>re {text}</external_dialogue>"


async def at_once(_: history.Pace) -> None:
    """Read the next page without Slack's pace: a hundred channels would take minutes after each kill."""


if __name__ == "__main__":
    history.Pace.step = at_once  # type: ignore[method-assign] # the loopback has no limit
    scripted.line = lambda said, request: _line(echo if said == scripted.DEFAULT else said, request)
    runpy.run_path(str(Path(__file__).with_name("quick_claudius.py")), run_name="__main__")
    sys.exit()
