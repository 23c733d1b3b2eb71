"""The way out of a machine that has no direct one: an HTTP proxy, and servers behind TLS of an authority of one's own."""

import asyncio
import base64
import ssl
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

HEAD_BYTES = 2**16
HOP = ("proxy-", "connection:", "keep-alive:")
"""Headers that a proxy does not pass on."""


@dataclass(slots=True)
class ForwardProxy:
    """An HTTP proxy that alone knows the names of the servers behind it: `CONNECT`, and requests of whole addresses."""

    routes: Mapping[str, int]
    """The port on loopback of each host."""
    password: str = ""
    """`name:password` that it wants; empty = nothing."""
    refuses: int = 0
    """The status that every request gets; 0 = it is passed on."""
    port: int = 0
    seen: list[str] = field(default_factory=list)
    """What was asked of it: method and target."""
    _server: asyncio.Server | None = None
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        """Listen."""
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        self.down()

    async def up(self) -> None:
        """Listen, at the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=HEAD_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    def down(self) -> None:
        """Listen no more, and break off what passes."""
        if self._server:
            self._server.close()
        for one in self._open:
            one.transport.abort()

    async def _serve(self, asks: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        self._open.add(answers)
        try:
            head = (await asks.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *headers = head.rstrip().split("\r\n")
            method, target, version = first.split(" ", 2)
            self.seen.append(f"{method} {target}")
            if status := self.refuses or self._unpaid(headers):
                answers.write(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                await answers.drain()
                return
            place = urlsplit(f"//{target}" if method == "CONNECT" else target)
            port = self.routes.get(place.hostname or "")
            if port is None:
                answers.write(b"HTTP/1.1 502 Unknown host\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                await answers.drain()
                return
            reads, writes = await asyncio.open_connection("127.0.0.1", port)
            self._open.add(writes)
            if method == "CONNECT":
                answers.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                is_upgrade = any(line.lower().startswith("upgrade:") for line in headers)
                kept = [line for line in headers if not line.lower().startswith(HOP)]
                kept.append(f"Connection: {'Upgrade' if is_upgrade else 'close'}")
                path = place._replace(scheme="", netloc="").geturl() or "/"
                writes.write("\r\n".join((f"{method} {path} {version}", *kept, "", "")).encode("latin-1"))
            await both_ways(asks, answers, reads, writes)
        except (OSError, asyncio.IncompleteReadError):
            return  # whoever asked has gone
        finally:
            self._open.discard(answers)
            answers.close()

    def _unpaid(self, headers: list[str]) -> int:
        wanted = f"proxy-authorization: basic {base64.b64encode(self.password.encode()).decode()}".lower()
        return 407 if self.password and wanted not in (line.lower() for line in headers) else 0


async def both_ways(
    asks: asyncio.StreamReader, answers: asyncio.StreamWriter, reads: asyncio.StreamReader, writes: asyncio.StreamWriter
) -> None:
    """Pass bytes on between two connections until one of them ends; then both have ended."""

    async def along(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(2**16):
                to.write(data)
                await to.drain()

    ways = {asyncio.ensure_future(along(asks, writes)), asyncio.ensure_future(along(reads, answers))}
    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    for way in ways:
        way.cancel()
    for one in (answers, writes):
        with suppress(OSError):
            one.close()


@dataclass(slots=True)
class Authority:
    """A certificate that signs itself, for a few names, as a company's own authority would."""

    directory: Path
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Make it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        alternatives = ",".join(f"DNS:{name}" for name in self.names) + ",IP:127.0.0.1"
        made = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout {self._key}"
        named = ["-out", str(self.file), "-subj", "/CN=An authority", "-addext", f"subjectAltName={alternatives}"]
        subprocess.run([*made.split(), *named], check=True, capture_output=True)

    @property
    def file(self) -> Path:
        """What `SSL_CERT_FILE` names."""
        return self.directory / "authority.pem"

    @property
    def _key(self) -> Path:
        return self.directory / "key.pem"

    async def in_front_of(self, port: int) -> asyncio.Server:
        """Serve with TLS what a server on loopback serves without it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self._key)

        async def serve(asks: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                await both_ways(asks, answers, *await asyncio.open_connection("127.0.0.1", port))

        return await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
