"""The command `claudius` with Slack's short waits, and a scripted voice that repeats the message that it answers."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from claudius.provider import Request
from claudius.providers import scripted

_line = scripted.line


def echo(request: Request) -> str:
    """Repeat what was said."""
    text = request.tail.rpartition('"text":"')[2].partition('"')[0]
    return f"<internal_monologue>It was said.</internal_monologue>\n<external_dialogue>re {text}</external_dialogue>"


if __name__ == "__main__":
    scripted.line = lambda said, request: _line(echo if said == scripted.DEFAULT else said, request)
    runpy.run_path(str(Path(__file__).with_name("quick_claudius.py")), run_name="__main__")
    sys.exit()
