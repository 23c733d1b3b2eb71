"""A real browser over the real console: Chromium of this system, driven by Playwright, which downloads none."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest

MUST = "CLAUDIUS_TEST_BROWSER"
"""Environment variable: with `must`, a test fails where it would be skipped for want of a browser."""
AXE = "axe_playwright_python"
"""The package that ships axe-core, as `axe.min.js`; pinned in `tests/lab/axe.txt`."""
WAIT_S = 20.0
ERASES_S = 180.0
"""How long an erasure, which writes git anew and every copy, may take on a busy machine."""
ROADS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
TELLS = """axe.run(document, {runOnly: RULES}).then(found => JSON.stringify(found.violations.map(one => one.id + ': '
    + one.nodes.slice(0, 3).map(node => node.target.join(' ') + ' ' + (node.any[0]?.message || '')).join(' | '))))"""


def _missing(what: str) -> NoReturn:
    if os.environ.get(MUST) == "must":
        pytest.fail(what)
    pytest.skip(what)


@dataclass(slots=True)
class Tab:
    """One page, and everything that must not happen on it."""

    page: Any
    problems: list[str] = field(default_factory=list)
    """Errors and warnings on its console, violations of its policy, exceptions."""
    hosts: set[str] = field(default_factory=set)
    """Whom it asked."""

    def enter(self, address: str, screen: str = "now") -> Tab:
        """Enter with a fresh address and open a screen."""
        self.page.goto(address)
        self.page.wait_for_selector("nav.rail")
        return self.open(screen)

    def open(self, screen: str) -> Tab:
        """Open a screen and wait until all its parts are read."""
        self.page.evaluate(f"location.hash = '{screen}'")
        self.page.wait_for_selector(f"nav a[href='#{screen}'][aria-current=page]")
        self.until("!/Reading…|Drawing…|Opening…/.test(document.body.innerText)")
        self.until("!document.querySelector('.strip')?.innerText.includes('…')")
        return self

    def until(self, expression: str) -> None:
        """Wait until an expression is true on the page, whose own policy lets no waiting script run there."""
        give_up_at = time.monotonic() + WAIT_S
        while not self.page.evaluate(expression):
            assert time.monotonic() < give_up_at, f"never true: {expression}\n{self.page.inner_text('body')[:2000]}"
            self.page.wait_for_timeout(20)

    def talk_as_owner(self, text: str) -> None:
        """Say a line in the owner's own conversation."""
        self.page.locator(".list button", has_text="You").click()
        self.page.wait_for_selector("#words:not([disabled])")
        self.page.fill("#words", text)
        self.page.press("#words", "Enter")

    def findings(self) -> list[str]:
        """Return what axe-core finds on the page as it is, by rule and place."""
        if (found_at := find_spec(AXE)) is None or not found_at.origin:
            _missing("axe-core is not there: `.ci/run browser` installs it")
        tools = self.page.context.new_cdp_session(self.page)  # the page's own policy runs no such script
        tools.send("Runtime.evaluate", {"expression": Path(found_at.origin).with_name("axe.min.js").read_text("utf-8")})
        asked = {"expression": TELLS.replace("RULES", json.dumps(RULES)), "awaitPromise": True}
        found: list[str] = json.loads(tools.send("Runtime.evaluate", asked)["result"]["value"])
        return found


@contextmanager
def browser() -> Iterator[Callable[..., Tab]]:
    """Open a browser; the function opens a tab, in a profile of its own unless one is given."""
    executable = next((path for name in ROADS if (path := shutil.which(name))), None)
    if executable is None:
        _missing("no Chromium is installed on this system")
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - an extra
    except ImportError:
        _missing("playwright is not installed (the extra `browser`)")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        arguments.append("--host-resolver-rules=MAP rebound.test 127.0.0.1, MAP evil.test 127.0.0.1")
        chromium = playwright.chromium.launch(executable_path=executable, args=arguments)

        def tab(scheme: Any = "light", width: int = 1440, context: Any = None) -> Tab:
            viewport: Any = {"width": width, "height": 900}
            profile = context or chromium.new_context(color_scheme=scheme, viewport=viewport, timezone_id="Europe/Rome")
            opened = Tab(profile.new_page())
            opened.page.set_default_timeout(WAIT_S * 1000)

            def logged(one: Any) -> None:
                if one.type in ("error", "warning"):
                    opened.problems.append(one.text)

            opened.page.on("console", logged)
            opened.page.on("pageerror", lambda one: opened.problems.append(str(one)))
            opened.page.on("request", lambda one: opened.hosts.add(one.url.split("/")[2]))
            return opened

        try:
            yield tab
        finally:
            chromium.close()
