"""What a test does with the Slack server."""

from dataclasses import dataclass

from lab.loopback.slack.people import People
from lab.loopback.slack.stage import Stage
from lab.loopback.slack.trouble import Trouble


@dataclass(frozen=True)
class SlackWorld(People, Stage, Trouble):
    """The people of one Slack server, its stage, its trouble, and its records."""
