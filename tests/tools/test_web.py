"""T25: `web.read` gives a page as text, and no one leads it inside, elsewhere, or into a long read."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from claudius.addresses import Refused, check_address
from claudius.config.schema import Config, ToolsSettings, ToolWebSettings
from claudius.errors import ToolFailed, ToolRefused
from claudius.memory.sqlite import SqliteStore
from claudius.tool import ToolCall, ToolClass
from claudius.tools import page as tool
from claudius.tools.page import checked, inside, page_text
from claudius.tools.shipped import build

HOST = "127.0.0.1"
CALL = ToolCall(
    id="t/0", turn="t", conversation="c", audience="a", person="p", tool="web.read", cls=ToolClass.READ, args={}
)
PAGE = """<html><head><title>Trains &amp; co</title><style>p{}</style></head><body><h1>Today</h1><!-- obey -->
<p>Some <b>bold</b>\n text, <a href="../t?a=1&amp;b">there</a>.<script>if (a<b) run()</script>
<pre>def f():\n    1</pre><ul><li>one<li>two</ul> 1 < 2 <a href="javascript:x">js</a>\x1b[31m</body></html>"""


@asynccontextmanager
async def site(**pages: Any) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve pages by their names; give the address and what was asked."""
    asked: list[str] = []

    async def _answer(request: web.Request) -> web.StreamResponse:
        asked.append(f"{request.method} {request.path_qs} {request.headers.get('Cookie', '')}".strip())
        made = pages[request.path.strip("/")]
        found = made(request) if callable(made) else made
        found = await found if isawaitable(found) else found
        return found if isinstance(found, web.StreamResponse) else web.Response(text=found, content_type="text/html")

    app = web.Application()
    app.router.add_route("*", "/{page:.*}", _answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0).start()
        yield f"http://{HOST}:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


def _answers(**words: Any) -> Callable[[web.Request], web.Response]:
    return lambda _: web.Response(**words)


async def read(url: str, *hosts: str, start: int = 0, chars: int = 16_000) -> str:
    """Read a page with these hosts allowed."""
    settings = ToolsSettings(web=ToolWebSettings(hosts=hosts), result_chars=chars)
    *_, reader = build(SqliteStore(Path()), lambda: Config(tools=settings), tuple)
    return await reader.run({"url": url, "from": start}, CALL)


async def test_a_page_is_its_words_and_where_its_links_lead() -> None:
    """Scripts, styles, comments and control characters are left out; one GET is sent, and no cookie goes back."""
    _moved = _answers(status=302, headers={"Location": "/x/page", "Set-Cookie": "who=ada"})
    async with site(old=_moved, **{"x/page": PAGE}) as (url, asked):
        text = await read(f"{url}/old", HOST)

    words = (
        f"Trains & co\n\nToday\n\nSome bold text, there ({url}/t?a=1&b).\n\ndef f():\n    1\n\none\ntwo\n1 < 2 js[31m"
    )
    assert text == f"{url}/x/page\n{words}"
    assert asked == ["GET /old", "GET /x/page"]


async def test_a_long_page_is_read_part_by_part() -> None:
    """A part says where the next one begins, and the last part says nothing."""
    async with site(page="<p>" + "abcde " * 400) as (url, _):
        first, last = [await read(f"{url}/page", HOST, start=one, chars=2000) for one in (0, 2000)]

    assert first.endswith("\n[characters 0 to 1000 of 2399; from=1000 reads on]")
    assert last.startswith(f"{url}/page\ncde abcde")
    assert not last.endswith("]")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://example.org/", "only https"),
        ("ftp://example.org/", "only https"),
        ("file:///etc/passwd", "no address"),
        ("example.org", "no address"),
        ("https://", "no address"),
        ("https:\\\\example.org\\", "no address"),
        ("https://exa mple.org/", "no address"),
        ("https://good.example@evil.example/", "a user's name"),
        ("https://:pw@evil.example/", "a user's name"),
        ("https://müller.example/", "write it as xn--mller-kva.example"),
        ("https://①②⑦.⓪.⓪.①/", "write it as 127.0.0.1"),
        ("https://%31%32%37.0.0.1/", "other letters"),
        ("https://127.0.0.1/", "a private network"),
        ("https://[::1]/", "a private network"),
        ("https://192.168.1.7/", "a private network"),
        ("https://169.254.169.254/latest/", "link-local"),
        ("https://[::ffff:127.0.0.1]/", "an address inside"),
        ("https://[64:ff9b::a9fe:a9fe]/", "an address inside"),
        ("https://[::127.0.0.1]/", "an address inside"),
        ("https://0.0.0.0/", "link-local"),
    ],
)
def test_an_address_that_may_not_be_asked_is_refused_before_a_byte_leaves(url: str, why: str) -> None:
    """A person who typed it: the owner's own list of hosts is the only way inside."""
    with pytest.raises(ToolRefused, match=why):
        checked(url, ())


@pytest.mark.parametrize("found", ["127.0.0.1", "10.0.0.1", "::1", "fd00:ec2::254", "169.254.1.1"])
@pytest.mark.parametrize("host", ["pages.example", "localhost", "2130706433", "0x7f.1", "127.1"])
def test_a_name_that_leads_inside_is_refused(host: str, found: str) -> None:
    """Also `localhost`, and the other spellings of an address, unless the owner named that very host."""
    with pytest.raises(Refused):
        check_address(host, found, inside(()))
    if found in ("127.0.0.1", "10.0.0.1", "::1"):
        check_address(host, found, inside((host,)))


async def test_a_host_is_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rebinding: what was checked is connected; the second answer is never asked for."""
    answers = ["127.0.0.1"]

    async def _getaddrinfo(_: Any, host: str, port: int, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers.pop(), port))]

    monkeypatch.setattr(type(asyncio.get_running_loop()), "getaddrinfo", _getaddrinfo)
    async with site(page="hello") as (url, asked):
        port = URL(url).port
        assert "hello" in await read(f"http://pages.example:{port}/page", "pages.example")
        answers.append("127.0.0.1")
        with pytest.raises(ToolRefused, match="a private network"):
            await read(f"https://other.example:{port}/page", "pages.example")

    assert asked == ["GET /page"]


@pytest.mark.parametrize("target", ["https://elsewhere.example/x", "//elsewhere.example/x", "https://169.254.169.254/"])
async def test_a_redirect_to_another_host_is_another_address(target: str) -> None:
    """It is named, so that it may be asked for; nothing is sent to it."""
    async with site(page=_answers(status=301, headers={"Location": target})) as (url, asked):
        with pytest.raises(ToolFailed, match=r"it leads to http.*another address"):
            await read(f"{url}/page", HOST)

    assert len(asked) == 1


async def test_what_is_no_page_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten gigabytes are cut, a slow page ends in time, a bomb stays packed, a loop of redirects ends."""

    async def _endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(request)
        try:
            for _ in range(10_000):
                await answer.write(b"x" * 1_000_000)
        except ConnectionError:
            pass
        return answer

    async def _slow(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(request)
        await asyncio.Event().wait()
        return answer

    pages = {
        "endless": _endless,
        "slow": _slow,
        "packed": _answers(body=gzip.compress(b"0" * 10**7), headers={"Content-Encoding": "gzip", "Content-Type": "text/plain"}),
        "loop": _answers(status=302, headers={"Location": "/loop"}),
        "picture": _answers(body=b"...", content_type="image/png"),
        "gone": _answers(status=410),
    }  # fmt: skip
    async with site(**pages) as (url, asked):
        assert (await read(f"{url}/endless", HOST)).endswith("of 2000000; from=15000 reads on]")
        for page, why in (("packed", "packed"), ("loop", "leads on"), ("picture", "neither"), ("gone", "410")):
            with pytest.raises(ToolFailed, match=why):
                await read(f"{url}/{page}", HOST)
        monkeypatch.setattr(tool, "READ_S", 0.2)
        with pytest.raises(ToolFailed, match="not read within"):
            await read(f"{url}/slow", HOST)

    assert len([one for one in asked if one == "GET /loop"]) == tool.MOST_REDIRECTS + 1
    with pytest.raises(ToolFailed, match="not be reached"):
        await read(f"{url}/page", HOST)


@pytest.mark.parametrize("charset", ["utf-8", "latin-1", "no-such", "idna", "zlib", "undefined"])
def test_any_character_set_makes_a_text(charset: str) -> None:
    """One that Python does not know, or that makes no text, is read as UTF-8."""
    assert "héllo" in page_text(
        "héllo".encode("latin-1" if charset == "latin-1" else "utf-8"), "text/plain", charset, URL()
    )
