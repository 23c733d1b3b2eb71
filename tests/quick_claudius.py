"""The command `claudius` with short waits in place of Slack's seconds, for tests that cannot wait that long."""

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from claudius.adapters.discord import adapter as discord_adapter
from claudius.adapters.discord.gateway import DiscordTimings
from claudius.adapters.slack import adapter
from claudius.adapters.slack import web_api as calls
from claudius.adapters.slack.connection import SlackTimings
from claudius.cli import main
from claudius.intent import Intent
from claudius.memory.turns import TurnStore
from claudius.runtime import adapter as links
from claudius.runtime import alerts, scheduler, server

APPEARS_S = 0.1
"""How long the loopback Slack may take to show a post whose send got no answer."""
ANSWERED_S = 3
"""How long a call of the Web API may take."""
WATCHFUL = "TEST_WATCHFUL"
"""Environment variable: if it is set, the watchdog's minutes are short too."""
DIES = "TEST_DIES"
"""Environment variable: a file. While it says `before commit` or `after commit`, the next turn's commit ends us there."""


def commits_and_dies(file: Path) -> None:
    """Have this process end by SIGKILL at a commit, as `file` says."""
    commit = TurnStore.commit

    async def dying(store: TurnStore, intent: Intent) -> Intent:
        """Commit, and die before or after it as the file says."""
        at = file.read_text("utf-8") if file.exists() else ""
        if at != "before commit":
            intent = await commit(store, intent)
        if at:
            os.kill(os.getpid(), signal.SIGKILL)
        return intent

    TurnStore.commit = dying  # type: ignore[method-assign] # this process is made to die


if __name__ == "__main__":
    if os.environ.get(DIES):
        commits_and_dies(Path(os.environ[DIES]))
    adapter.SlackAdapter.appears_s = APPEARS_S
    calls.TIMEOUT_S = ANSWERED_S
    if os.environ.get(WATCHFUL):
        short = SlackTimings(
            tick_s=0.05,
            ping_s=0.5,
            ticket_s=1.0,
            client_s=6.0,
            silent_s=5.0,
            deaf_s=1.0,
            spoke_s=60.0,
            arrives_s=0.3,
            again_s=0.2,
        )
        adapter.SlackTimings = lambda: short  # type: ignore[assignment,misc] # the default timing
        patient = DiscordTimings(
            tick_s=0.05, identify_s=0.0, lost_s=0.3, client_s=3.0, deaf_s=1.0, arrives_s=0.3, again_s=0.2, close_s=0.5
        )
        discord_adapter.DiscordTimings = lambda: patient  # type: ignore[assignment,misc] # the default timing
        alerts.LOOK_S = server.LOOK_S = scheduler.LOOK_S = 0.2
        alerts.PATIENCE |= dict.fromkeys(alerts.PATIENCE, timedelta(seconds=0.2))
        links.BELIEVED_S = 5.0
    main(sys.argv[1:])
