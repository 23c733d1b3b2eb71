"""The Slack server as a process of its own; its first line on stdout, JSON, names its URLs, tokens and ids.

PYTHONPATH=tests python -m lab.loopback.slack --port 0 --control-port 0
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from contextlib import suppress

from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import APP_TOKEN, BOT, BOT_TOKEN, BOT_USER, TEAM


async def serve(port: int, control_port: int) -> None:
    """Run until stopped."""
    async with SlackServer(port=port, control_port=control_port) as server:
        facts = {
            "base_url": server.base_url,
            "control_url": server.control_url,
            "bot_token": BOT_TOKEN,
            "app_token": APP_TOKEN,
            "team": TEAM,
            "bot_user": BOT_USER,
            "bot": BOT,
        }
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description="A Slack on loopback.")
    parser.add_argument("--port", type=int, default=0, help="of the Web API and its sockets; 0 = any free one")
    parser.add_argument("--control-port", type=int, default=0, help="where tests drive the server")
    given = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(given.port, given.control_port))


if __name__ == "__main__":
    main()
