"""Define what a table of settings is, and the tables of who may talk, what it may cost, how it is watched and run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Positive = Annotated[int, Meta(ge=1, le=1_000_000_000)]
NotNegative = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Dollars = Annotated[float, Meta(ge=0, le=1_000_000_000)]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Url = Annotated[str, Meta(pattern=r"^(https?://[^\s/]\S*)?$")]
"""A server's URL; empty = the default one."""
Words = tuple[str, ...]
Ids = Words | None
"""Ids that are allowed; None = the list is not set and allows everyone."""
ROLE = r"^(all|lanes|listen(/[a-z][a-z0-9_.]*)?|clock|cortex|archive)$"

MUTED = r"^\S+( until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?$"
"""A person's id, and until when; instants of one form are compared as they are written."""
MODERATOR = r"^\S+:\S+:\S+$"
"""A person's id, or `discord:SERVER:role:ID`."""


def says(description: str, **bounds: Any) -> Meta:
    """Describe a setting, and bound what it may be."""
    return Meta(description=description, **bounds)


class SettingsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of config.toml. Each field's description is its documentation."""


class BotsSettings(SettingsTable, frozen=True):
    """Other bots."""

    allow: Annotated[Words, says("person ids of bots that are heard; * = every one")] = ()
    turns: Annotated[Positive, says("the most messages heard from one bot in one conversation in ten minutes")] = 6


class AccessSettings(SettingsTable, frozen=True):
    """Who is heard besides what the networks' own rules decide, by stable id. A denial wins over everything."""

    slack_people: Annotated[Ids, says("user ids heard on Slack; null = every member, [] = nobody")] = None
    slack_people_denied: Annotated[Words, says("user ids never heard on Slack")] = ()
    slack_channels: Annotated[
        Ids, says("channel ids heard on Slack besides direct messages; null = every one, [] = none")
    ] = None
    slack_channels_denied: Annotated[Words, says("channel ids never heard on Slack")] = ()
    discord_roles: Annotated[
        Ids, says("role ids of which a person on Discord needs one; null = none is needed, [] = nobody")
    ] = None
    discord_roles_denied: Annotated[Words, says("role ids whose holders are never heard on Discord")] = ()

    muted: Annotated[
        tuple[Annotated[str, Meta(pattern=MUTED)], ...],
        says("people who are heard and never answered: ids, or `ID until INSTANT`"),
    ] = ()

    moderators: Annotated[
        tuple[Annotated[str, Meta(pattern=MODERATOR)], ...],
        says("people who may mute others: ids, or `discord:SERVER:role:ID` for a role"),
    ] = ()

    @property
    def is_by_role(self) -> bool:
        """Whether a role decides who is heard on Discord."""
        return self.discord_roles is not None or bool(self.discord_roles_denied)

    @property
    def asks_roles(self) -> bool:
        """Whether a role decides anything on Discord."""
        return self.is_by_role or any(":role:" in one for one in self.moderators)


class BudgetSettings(SettingsTable, frozen=True):
    """What it may cost."""

    daily_usd: Annotated[Dollars, says("dollars a day; 0 = no cap")] = 0.0
    monthly_usd: Annotated[Dollars, says("dollars a month; 0 = no cap")] = 0.0
    person_daily_usd: Annotated[Dollars, says("dollars a day for one person; 0 = no cap")] = 0.0
    channel_daily_usd: Annotated[Dollars, says("dollars a day for one channel; 0 = no cap")] = 0.0
    person_per_minute: Annotated[Positive, says("the most messages of one person in a minute")] = 20
    person_per_day: Annotated[Positive, says("the most messages of one person in a day")] = 500
    conversation_per_hour: Annotated[Positive, says("the most messages of one conversation in an hour")] = 200


class AlertSettings(SettingsTable, frozen=True):
    """When the owners are told that something is wrong: in a direct message, and through a webhook."""

    webhook: Annotated[Url, says("a URL that gets each alert as a JSON document by POST; empty = none")] = ""
    disk_days: Annotated[NotNegative, says("an alert if the disk will be full in fewer days; 0 = never")] = 30


class LogSettings(SettingsTable, frozen=True):
    """The log."""

    level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], says("the least severe level that is logged")] = (
        "INFO"
    )


class HttpSettings(SettingsTable, frozen=True):
    """The soul's own endpoint, beside the control socket; its token is in .env."""

    listen: Annotated[str, says("HOST:PORT for /api/whisper, /health and /metrics; empty = none")] = ""


class StorageSettings(SettingsTable, frozen=True):
    """The disk."""

    reserve_mb: Annotated[NotNegative, says("free megabytes below which nothing is accepted")] = 64


class ArchiveSettings(SettingsTable, frozen=True):
    """The history of portraits and state in git."""

    remote: Annotated[
        str,
        says(
            "a git repository that mirrors the memory's history, one way: an https or ssh URL, or a path; empty = none",
            pattern=r"^((https|ssh|file)://\S+|[\w.-]+@[\w.-]+:\S+|/.+)?$",
        ),
    ] = ""


class WorkerSettings(SettingsTable, frozen=True):
    """One of several processes that take turns; only with a database server."""

    lanes: Annotated[Positive, says("the most conversations that one process holds at a time")] = 64
    lease_s: Annotated[Seconds, says("after how long a dead process's conversations are taken over")] = 60.0
    roles: Annotated[
        tuple[Annotated[str, Meta(pattern=ROLE)], ...],
        says("what it may do: all, or lanes, listen, listen/slack, listen/discord, clock, cortex, archive"),
    ] = ("all",)


class StoreSettings(SettingsTable, frozen=True):
    """The database."""

    url: Annotated[
        str,
        says(
            "where everything is kept: sqlite = one file in the home, or postgres://user@host/database; "
            "the password is CLAUDIUS_STORE_PASSWORD in .env",
            pattern=r"^(sqlite|postgres(ql)?://\S*)$",
        ),
    ] = "sqlite"
    listen_url: Annotated[
        str,
        says(
            "the way on which processes hear of each other at once, if another than store.url: past a "
            "pooler in transaction mode; empty = none, so that each looks every second",
            pattern=r"^(store\.url|postgres(ql)?://\S*)?$",
        ),
    ] = "store.url"
    failover: Annotated[bool, says("a standby takes over: `doctor` asks for a synchronous one")] = False
