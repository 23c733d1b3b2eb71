"""The Discord server as a process of its own; its first line on stdout, JSON, names its URLs, token and ids.

PYTHONPATH=tests python -m lab.loopback.discord --port 0 --control-port 0
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from contextlib import suppress

from lab.loopback.discord.server import DiscordServer
from lab.loopback.discord.state import ANA, APP, BOT_TOKEN, BOT_USER, CHANNEL, DM, GUILD


async def serve(port: int, control_port: int) -> None:
    """Run until stopped."""
    async with DiscordServer(port=port, control_port=control_port) as server:
        facts = {
            "base_url": server.base_url,
            "gateway_url": server.gateway_url,
            "control_url": server.control_url,
            "bot_token": BOT_TOKEN,
            "application": APP,
            "bot_user": BOT_USER,
            "guild": GUILD,
            "channel": CHANNEL,
            "dm": DM,
            "user": ANA,
        }
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description="A Discord on loopback.")
    parser.add_argument("--port", type=int, default=0, help="of the API and its sockets; 0 = any free one")
    parser.add_argument("--control-port", type=int, default=0, help="where tests drive the server")
    given = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(given.port, given.control_port))


if __name__ == "__main__":
    main()
