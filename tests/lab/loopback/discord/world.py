"""What a test does with the Discord server."""

from dataclasses import dataclass

from lab.loopback.discord.people import People
from lab.loopback.discord.pressing import Pressing
from lab.loopback.discord.stage import Stage
from lab.loopback.discord.trouble import Trouble
from lab.loopback.discord.watching import Watching


@dataclass(frozen=True)
class DiscordWorld(People, Pressing, Stage, Trouble, Watching):
    """The people of one Discord server, its stage, its trouble, and its records."""
