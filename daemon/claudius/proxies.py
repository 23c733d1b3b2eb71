"""The proxies between this process and the world: one reading of the environment, for every library and child of ours.

The libraries differ in which variables they read, and Slack's ignores NO_PROXY. So `unify` makes the variables say the
same in every spelling, for those that read them by themselves (httpx, git, the claude command), and whoever opens a
connection with another library asks `proxy_of`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
LOOPBACK = "localhost,127.0.0.1,::1"
"""Never reached through a proxy, whatever NO_PROXY says: the models of this machine, and its own servers."""
_PLAIN = {"ws": "http", "wss": "https"}


def unify(environ: MutableMapping[str, str], dotenv: Mapping[str, str]) -> None:
    """Set each variable of a process in small and capital letters; one that only `.env` holds counts, too.

    A SOCKS proxy is taken out: httpx would refuse to work at all.
    """
    for name in NAMES:
        spelt = (source[one] for source in (environ, dotenv) for one in (name, name.upper()) if one in source)
        value = next(spelt, "")
        if name == "no_proxy":
            value = re.sub(r"\[([\da-fA-F:.]+)\]", r"\1", value)  # httpx cannot be built with brackets
            value = "*" if "*" in value.replace(" ", "").split(",") else f"{value},{LOOPBACK}".strip(",")
        for one in (name, name.upper()):
            environ.pop(one, None)
            if value and not value.lower().startswith("socks"):
                environ[one] = value


def proxy_of(url: str) -> str | None:
    """Return the proxy through which an address is reached; None = directly."""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - most commands need no network

    place = urlsplit(url)
    host = place.hostname or ""
    if _is_here(host) or any(proxy_bypass(one) for one in (host, f"{host}:{place.port}")):
        return None
    known, scheme = getproxies(), _PLAIN.get(place.scheme, place.scheme)
    found = known.get(scheme) or known.get("all")
    return found if not found or "://" in found else f"http://{found}"


def named(url: str) -> str:
    """Return the proxy of an address as a message may name it, without its password; empty if there is none."""
    proxy = proxy_of(url)
    place = (proxy.rpartition("@") if "@" in proxy else proxy.partition("://"))[2] if proxy else ""
    return f"the proxy {urlsplit(f'//{place}').netloc}" if proxy else ""


def _is_here(host: str) -> bool:
    """Return whether a host is this machine, however it is written. Pure."""
    with suppress(ValueError):
        address = ip_address(host)
        return address.is_loopback or address.is_unspecified
    return host.rstrip(".").lower() == "localhost"
