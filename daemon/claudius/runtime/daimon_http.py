"""Ask a daimon over HTTP: one bounded request, to an address that is checked before it is connected.

Source: the daimon design, section 3.1; the security design, section 8.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from msgspec import Struct

from claudius.config import DaimonSettings
from claudius.foreign import plain_message

PATH = "/api/whisper"
ANSWER_BYTES = 8192
CONNECT_S = 1.0
MOST_RETRY_S = 86_400.0

Outcome = Literal["counsel", "silence", "refused", "dreaming", "failed"]


class DaimonAnswer(Struct, frozen=True, kw_only=True):
    """The result of asking a daimon."""

    outcome: Outcome
    text: str = ""
    influence: str = ""
    retry_after_s: float = 0.0
    detail: str = ""


class Refused(OSError):
    """A daimon may not live at this address."""


def check_address(host: str, found: str) -> None:
    """Check that a configured host may resolve to this address. Pure. Raises: Refused.

    Private and loopback addresses are allowed only if the owner wrote that very address or `localhost`; link-local
    ones, where clouds serve their metadata, never.
    """
    address = ipaddress.ip_address(found.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address.sixtofour or address.teredo):
        raise Refused(f"{host}: an address inside an address is not asked")
    if address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA:
        raise Refused(f"{host}: link-local addresses are not asked")
    is_named = host == "localhost" and address.is_loopback
    with suppress(ValueError):  # a name is no address
        is_named = is_named or ipaddress.ip_address(host.strip("[]")) == address
    if not address.is_global and not is_named:
        raise Refused(f"{host} leads into a private network: write the address itself if it is meant")


_METADATA = (ipaddress.ip_address("fd00:ec2::254"), ipaddress.ip_address("100.100.100.200"))


class _Once(AbstractResolver):
    """Resolves the host once, so that the address that was checked is the one that is connected."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the first address that is allowed. Raises: Refused, OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        for kind, _, proto, _, address in found:
            check_address(host, str(address[0]))
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


async def ask(daimon: DaimonSettings, token: str, body: Mapping[str, Any]) -> DaimonAnswer:
    """Ask a daimon within its timeout. Never raises for failures of the other side."""
    try:
        async with asyncio.timeout(daimon.timeout_s):
            return await _ask(daimon, token, body)
    except TimeoutError:
        return DaimonAnswer(outcome="failed", detail="it did not answer in time")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return DaimonAnswer(outcome="failed", detail=plain_message(error))


async def _ask(daimon: DaimonSettings, token: str, body: Mapping[str, Any]) -> DaimonAnswer:
    host = daimon.host.strip().strip("[]").lower()
    try:
        check_address(host, host)  # a literal address does not go through the resolver
    except Refused:
        raise
    except ValueError:
        pass
    place = f"[{host}]" if ":" in host else host
    url = f"{'https' if daimon.tls else 'http'}://{place}:{daimon.port}{PATH}"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connector = aiohttp.TCPConnector(resolver=_Once(), use_dns_cache=False, force_close=True)
    timeout = aiohttp.ClientTimeout(total=daimon.timeout_s, sock_connect=CONNECT_S)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session,
        session.post(url, json=body, headers=headers, allow_redirects=False) as response,
    ):
        return _read(response.status, response.headers, await _bounded(response))


async def _bounded(response: aiohttp.ClientResponse) -> bytes | None:
    """Read an answer up to `ANSWER_BYTES`; None if there is more."""
    found = b""
    async for piece in response.content.iter_any():
        found += piece
        if len(found) > ANSWER_BYTES:
            return None
    return found


def _read(status: int, headers: Mapping[str, str], body: bytes | None) -> DaimonAnswer:
    """Map an HTTP answer to a `DaimonAnswer` by the table of the daimon design. Pure."""
    if status in (401, 403):
        return DaimonAnswer(outcome="refused", detail=f"it refused our token ({status})")
    if status == 503:
        text = headers.get("Retry-After", "")
        after_s = min(float(text), MOST_RETRY_S) if text.isdecimal() else 0.0
        return DaimonAnswer(outcome="dreaming", retry_after_s=after_s, detail="it dreams")
    if status not in (200, 204):
        return DaimonAnswer(outcome="failed", detail=f"it answered {status}")
    if body is None:
        return DaimonAnswer(outcome="failed", detail=f"its answer is longer than {ANSWER_BYTES} bytes")
    return _counsel(body) if status == 200 else DaimonAnswer(outcome="silence")


def _counsel(body: bytes) -> DaimonAnswer:
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):  # RecursionError: the JSON is nested too deep
        return DaimonAnswer(outcome="failed", detail="its answer is no JSON")
    if not isinstance(document, dict) or not isinstance(document.get("whisper", ""), str):
        return DaimonAnswer(outcome="failed", detail="its answer is no whisper")
    text, influence = document.get("whisper", ""), document.get("influence")
    known = influence if influence in ("subtle", "strong") else ""
    return DaimonAnswer(outcome="counsel" if text.strip() else "silence", text=text, influence=known)
