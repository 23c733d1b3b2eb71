"""S27: a daimon's host that leads to an inner address: metadata, other spellings, redirects, DNS rebinding."""

import asyncio
import socket
from typing import Any

import pytest

from claudius.addresses import Refused, check_address
from claudius.config.schema import DaimonSettings
from claudius.runtime.daimons import ask
from lab.loopback.daimon import DaimonServer, Whispers

REFUSED = [
    ("169.254.169.254", "169.254.169.254"),
    ("metadata.example", "169.254.169.254"),
    ("metadata.example", "fd00:ec2::254"),
    ("fe80::1", "fe80::1"),
    ("::ffff:127.0.0.1", "::ffff:127.0.0.1"),
    ("::ffff:169.254.169.254", "::ffff:169.254.169.254"),
    ("2130706433", "127.0.0.1"),
    ("0x7f.1", "127.0.0.1"),
    ("0177.0.0.1", "127.0.0.1"),
    ("kothar.example", "127.0.0.1"),
    ("kothar.example", "10.0.0.1"),
    ("kothar.example", "::1"),
    ("0.0.0.0", "0.0.0.0"),  # noqa: S104 - nothing is bound
    ("localhost", "10.0.0.1"),
]
LET_THROUGH = [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("::1", "::1"), ("192.168.1.7", "192.168.1.7"),
               ("kothar.example", "8.8.8.8")]  # fmt: skip


@pytest.mark.parametrize(("host", "found"), REFUSED)
def test_s27_inner_addresses_are_refused(host: str, found: str) -> None:
    """Link-local is always refused; private and loopback are allowed only if the owner wrote that exact address."""
    with pytest.raises(Refused):
        check_address(host, found)


@pytest.mark.parametrize(("host", "found"), LET_THROUGH)
def test_s27_what_the_owner_wrote_is_asked(host: str, found: str) -> None:
    """The exact address, `localhost`, and addresses on the public network are asked."""
    check_address(host, found)


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0x7f.1", "127.1", "localtest.example"])
async def test_s27_no_byte_leaves_for_another_spelling(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decimal, hex and short forms, and a name that means loopback, are refused before a connection."""
    _answers(monkeypatch, ["127.0.0.1"])
    async with DaimonServer() as kothar:
        answer = await ask(
            DaimonSettings(enabled=True, url=f"http://{host}:{kothar.port}"), "t", {"source": "claudius"}
        )

    assert answer.outcome == "failed"
    assert kothar.heard == []


async def test_s27_a_host_is_resolved_once_and_connected_by_that_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rebinding: the resolver is not asked a second time."""
    asked = _answers(monkeypatch, ["127.0.0.1", "169.254.169.254"])
    async with DaimonServer() as kothar:
        answer = await ask(
            DaimonSettings(enabled=True, url=f"http://localhost:{kothar.port}"), "t", {"source": "claudius"}
        )

    assert answer.outcome == "counsel"
    assert asked == ["localhost"]


async def test_s27_a_redirect_is_not_followed() -> None:
    """A daimon cannot send us elsewhere."""
    async with DaimonServer() as inner:
        place = f"http://127.0.0.1:{inner.port}/api/whisper"
        async with DaimonServer([Whispers(status=307, headers={"Location": place})]) as kothar:
            answer = await ask(
                DaimonSettings(enabled=True, url=f"http://127.0.0.1:{kothar.port}"), "secret", {"source": "claudius"}
            )

    assert answer.outcome == "failed"
    assert inner.heard == []


async def test_s27_proxy_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxy variables are not read: the token goes to the daimon or nowhere."""
    async with DaimonServer() as proxy, DaimonServer() as kothar:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        answer = await ask(
            DaimonSettings(enabled=True, url=f"http://127.0.0.1:{kothar.port}"), "secret", {"source": "claudius"}
        )

    assert answer.outcome == "counsel"
    assert proxy.heard == []


def _answers(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> list[str]:
    """Script the resolver's answers, one after the other. Returns the questions it was asked."""
    asked: list[str] = []

    async def getaddrinfo(_: Any, host: str, port: int, **__: Any) -> list[Any]:
        asked.append(host)
        address = addresses[min(len(asked), len(addresses)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    loop = type(asyncio.get_running_loop())
    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    return asked
