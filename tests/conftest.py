"""Shared ground of the test suite: how hard hypothesis looks, and a home of one's own for every test."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from claudius.home import Home

os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # processes that a test starts find the lab

if TYPE_CHECKING:
    from both import Side

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]}
settings.register_profile("push", max_examples=60, **_COMMON)
settings.register_profile("full", max_examples=300, **_COMMON)
settings.register_profile("nightly", max_examples=20_000, **_COMMON)
PROFILE = os.environ.get("CLAUDIUS_TEST_PROFILE", "push")
settings.load_profile(PROFILE)
LEFT_OUT = {"push": ("slow", "nightly"), "full": ("nightly",), "nightly": ()}[PROFILE]
"""What a profile does not run, unless it is asked for by `-m`."""


def pytest_configure() -> None:
    """Let every child of a test be interrupted: a suite that runs in the background was told to ignore SIGINT."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long forms unless they are asked for by `-m`; those of a night may take as long as they need."""
    for item in items:
        if "nightly" in item.keywords:
            item.add_marker(pytest.mark.timeout(0))
    if config.getoption("-m"):
        return
    for item in items:
        if "/testing/loopback" in item.path.as_posix():
            item.add_marker(pytest.mark.slow)  # the doubles prove themselves in `full`; a push drives them anyway
        for form in LEFT_OUT:
            if form in item.keywords:
                item.add_marker(pytest.mark.skip(reason=f"{form} form: .ci/run {'full' if form == 'slow' else form}"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Give an empty, private home."""
    made = Home(tmp_path / "home")
    made.create()
    return made


@pytest.fixture(autouse=True)
def _log_of_its_own() -> Iterator[None]:
    """Give the log back as it was: who composes a whole soul in a test's process starts its log there."""
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
    """Give one network after the other: what holds on every network is said once."""
    from both import SIDES  # noqa: PLC0415 - most tests need neither network's library

    async with SIDES[request.param]() as running:
        yield running
