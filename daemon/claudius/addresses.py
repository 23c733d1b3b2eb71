"""Where nobody may lead us: addresses are checked, and the one that was checked is the one that is connected.

A daimon's host is the owner's own word; an address that a tool is asked for may be anybody's.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from contextlib import suppress

from aiohttp.abc import AbstractResolver, ResolveResult

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Refused(OSError):
    """We do not connect to this address."""


def names_itself(host: str, address: Address) -> bool:
    """Return whether a host is that very address, or `localhost`. Pure."""
    with suppress(ValueError):  # a name is no address
        return ipaddress.ip_address(host.strip("[]")) == address
    return host == "localhost" and address.is_loopback


def check_address(host: str, found: str, leads_inside: Callable[[str, Address], bool] = names_itself) -> None:
    """Check that a host may resolve to this address. Pure. Raises: Refused, ValueError if it is no address.

    Private and loopback addresses are allowed only to hosts that may lead inside: by default if the owner wrote that
    very address or `localhost`. Link-local ones, where clouds serve their metadata, never.
    """
    address = ipaddress.ip_address(found.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and _wraps(address):
        raise Refused(f"{host}: an address inside an address is not asked")
    if address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA:
        raise Refused(f"{host}: link-local addresses are not asked")
    if not (address.is_global or leads_inside(host, address)):
        raise Refused(f"{host} leads into a private network: write the address itself if it is meant")


_METADATA = (ipaddress.ip_address("fd00:ec2::254"), ipaddress.ip_address("100.100.100.200"))
_WRAPPED = tuple(map(ipaddress.IPv6Network, ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96")))
"""Networks whose addresses hold one of IPv4: compatible, translated by NAT64, and translated by SIIT."""
_PLAIN = (ipaddress.IPv6Address("::1"), ipaddress.IPv6Address("::"))
"""Inside the first of those, and no address of IPv4. By name: Python 3.13 takes `::ffff:127.0.0.1` for a loopback."""


def _wraps(address: ipaddress.IPv6Address) -> bool:
    """Return whether an address holds one of IPv4."""
    if address in _PLAIN:
        return False
    found = address.ipv4_mapped or address.sixtofour or address.teredo
    return found is not None or any(address in one for one in _WRAPPED)


def check_literal(host: str, leads_inside: Callable[[str, Address], bool] = names_itself) -> None:
    """Check a host that is itself an address, because it goes through no resolver. Raises: Refused."""
    with suppress(ValueError):
        ipaddress.ip_address(host.strip("[]").partition("%")[0])
        check_address(host, host.strip("[]"), leads_inside)


class Once(AbstractResolver):
    """Resolves a host once, so that the address that was checked is the one that is connected."""

    def __init__(self, leads_inside: Callable[[str, Address], bool] = names_itself) -> None:
        """`leads_inside`: which hosts may resolve to private addresses."""
        self._leads_inside = leads_inside

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the first address, if it is allowed. Raises: Refused, OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        for kind, _, proto, _, address in found:
            check_address(host, str(address[0]), self._leads_inside)
            return [
                ResolveResult(
                    hostname=host,
                    host=str(address[0]),
                    port=port,
                    family=kind,
                    proto=proto,
                    flags=socket.AI_NUMERICHOST,
                )
            ]
        raise OSError(f"{host} has no address")

    async def close(self) -> None:
        """Do nothing: nothing is open."""
