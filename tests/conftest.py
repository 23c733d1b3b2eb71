"""Shared setup of the test suite: hypothesis profiles, and a home for every test."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

import made_once
from claudius.home import Home
from lab import postgres
from lab.postgres import Server

made_once.install()
os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # child processes of a test can import the lab

if TYPE_CHECKING:
    from both import Side
    from driven import Machine

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]}
settings.register_profile("push", max_examples=60, **_COMMON)
settings.register_profile("full", max_examples=300, **_COMMON)
settings.register_profile("nightly", max_examples=5_000, **_COMMON)
PROFILE = os.environ.get("CLAUDIUS_TEST_PROFILE", "push")
settings.load_profile(PROFILE)
LEFT_OUT = {"push": ("slow", "nightly"), "full": ("nightly",), "nightly": ()}[PROFILE]
"""What a profile does not run, unless it is asked for by `-m`."""


def pytest_configure() -> None:
    """Restore SIGINT, so that tests can interrupt their children: a background shell job starts with it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the slow and nightly tests unless `-m` asks for them; nightly tests have no timeout."""
    for item in items:
        if "nightly" in item.keywords:
            item.add_marker(pytest.mark.timeout(0))
    if config.getoption("-m"):
        return
    for item in items:
        for form in LEFT_OUT:
            if form in item.keywords:
                item.add_marker(pytest.mark.skip(reason=f"{form} form: .ci/run {'full' if form == 'slow' else form}"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Say at the end how many slow and nightly tests were left out, and what runs them."""
    yield
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    left_out = {form: sum(f"{form} form: " in reason for reason in reasons) for form in ("slow", "nightly")}
    if any(left_out.values()):
        said = (
            f"left out: {left_out['slow']} slow tests (.ci/run full), {left_out['nightly']} nightly (.ci/run nightly)"
        )
        terminalreporter.write_line(said, yellow=True)
    without = sum(postgres.MISSING in reason for reason in reasons)
    if without:
        terminalreporter.write_line(f"left out: {without} tests that need PostgreSQL", yellow=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that was to have a database server, and skipped the tests that need one."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", ()) if reporter else ()
    if os.environ.get(postgres.REQUIRED) == "1" and any(postgres.MISSING in str(one.longrepr) for one in skipped):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def careless() -> Iterator[None]:
    """Set umask 000 in this process."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return an empty, private home."""
    made = Home(tmp_path / "home")
    made.create()
    return made


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine on which nothing was done yet."""
    from driven import Machine  # noqa: PLC0415 - most tests run no command

    return Machine(tmp_path)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """Return a real PostgreSQL, one for the session; the test is skipped, or fails, if there is none."""
    if not postgres.is_there():
        if os.environ.get(postgres.REQUIRED) == "1":
            pytest.fail(postgres.MISSING)
        pytest.skip(postgres.MISSING)
    with postgres.running() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL of an empty schema of this test's own."""
    with postgres.schema(postgres_server, f"t_{request.node.name}") as url:
        yield url


@pytest.fixture(autouse=True)
def _log_of_its_own() -> Iterator[None]:
    """Restore the logger after each test: a test that composes a complete soul attaches log handlers."""
    log = logging.getLogger("claudius")
    before, level, propagates = list(log.handlers), log.level, log.propagate
    yield
    for handler in set(log.handlers) - set(before):
        log.removeHandler(handler)
        handler.close()
    log.setLevel(level)
    log.propagate = propagates


@pytest.fixture(params=("discord", "slack"))
async def side(request: pytest.FixtureRequest) -> AsyncIterator[Side]:
    """Run the test on each network in turn: a rule that holds on every network is written once."""
    from both import SIDES  # noqa: PLC0415 - most tests need neither network's library

    async with SIDES[request.param]() as running:
        yield running
