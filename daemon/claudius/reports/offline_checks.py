"""Find what is wrong with tokens and servers without asking any network: by how they begin, and by their names."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from urllib.parse import urlsplit

from claudius.config import SETTINGS, Loaded, daimons
from claudius.reports.network_checks import Check

PREFIXES: Mapping[str, str] = {
    "xoxb-": "SLACK_BOT_TOKEN",
    "xapp-": "SLACK_APP_TOKEN",
    "sk-ant-": "ANTHROPIC_API_KEY",
    "gsk_": "GROQ_API_KEY",
}
"""How a token begins, and where it belongs."""
FOREIGN: Mapping[str, str] = {
    "xoxp-": "a person's token of Slack",
    "xoxe": "a refresh token of Slack",
    "http": "an address",
}
"""How something begins that is no token of any setting."""
STRICT = ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN")
"""Tokens that always begin as the table says; a key may be of another kind behind a gateway."""
DISCORD_PARTS = 3
"""A bot's token of Discord has three parts, between dots."""
ANSWERS_S = 2.0
"""How long a name may take to be resolved, or a server on this machine to be reached."""


def misplaced(name: str, value: str) -> str:
    """Return why a secret cannot be what its name says; empty = nothing speaks against it. Pure."""
    begins = next((prefix for prefix, owner in PREFIXES.items() if owner == name), "")
    for prefix, owner in PREFIXES.items():
        if value.startswith(prefix) and owner != name:
            return f"it begins with {prefix} and belongs into {owner}"
    for prefix, what in FOREIGN.items():
        if value.startswith(prefix):
            return f"it is {what}"
    if name in STRICT and not value.startswith(begins):
        return f"it does not begin with {begins}"
    if name == "DISCORD_TOKEN" and value.count(".") + 1 != DISCORD_PARTS:
        return "it does not have three parts, between dots: it may be the application's secret or key"
    return "it contains a space" if any(char.isspace() for char in value) else ""


def exchanged_tokens(loaded: Loaded) -> Iterator[Check]:
    """Check whether each secret can be what its name says."""
    for name in (*PREFIXES.values(), "DISCORD_TOKEN"):
        value = loaded.secret(name)
        if value and (why := misplaced(name, value)):
            yield Check("tokens", ok=False, detail=f"{name}: {why}", fix="put each token into its own line of .env")


def own_servers(loaded: Loaded) -> Iterator[Check]:
    """Check whether each server that the settings name exists: its name resolves, and on this machine it listens."""
    named = dict(_named(loaded))
    with ThreadPoolExecutor(max_workers=max(1, len(named))) as threads:
        for (key, url), why in zip(named.items(), threads.map(_dead, named.values()), strict=True):
            if why:
                fix = f"correct {key}, or start what should listen there"
                yield Check("servers", ok=False, detail=f"{key} = {url}: {why}", fix=fix)


def _named(loaded: Loaded) -> Iterator[tuple[str, str]]:
    """Yield each setting that names a server of one's own, with its address."""
    for key in (
        "slack.api_url",
        "discord.api_url",
        "discord.gateway_url",
        "anthropic.base_url",
        "openai.base_url",
        "alerts.webhook",
    ):
        section, _, name = key.partition(".")
        value = str(getattr(getattr(loaded.config, section), name))
        if value and value != SETTINGS[key].default:
            yield key, value
    for name, daimon in daimons(loaded.config).items():
        if daimon.enabled:
            yield f"{name}.url", daimon.url


def _dead(url: str) -> str:
    """Return why nothing can be there; empty if something may. Resolves the name; tries ports of this machine only."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        port = parts.port or (443 if parts.scheme in ("https", "wss") else 80)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, ValueError):
        return f"no server is called {host!r}"
    if not all(ip_address(str(address[4][0]).partition("%")[0]).is_loopback for address in found):
        return ""
    for family, kind, _, _, address in found:
        with socket.socket(family, kind) as trying:
            trying.settimeout(ANSWERS_S)
            if trying.connect_ex(address) == 0:
                return ""
    return f"nothing listens on port {port} of this machine"
