"""A home with a week of life for each module of these tests, and the real console over it."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from browsing import Tab, browser
from claudius.home import Home
from driven import Machine, serving_console
from lived_week import ENDS, week


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test that opens a browser, so that `.ci/run browser` runs those and no others."""
    for item in items:
        if "tabs" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play the week once."""
    root = tmp_path_factory.mktemp("lived")
    week(Home(root / "home"))
    return root / "home"


@pytest.fixture
def machine(lived: Path, tmp_path: Path) -> Machine:
    """Return a machine whose owner has that week behind them."""
    machine = Machine(tmp_path, env={"CLAUDIUS_CLOCK": ENDS.isoformat(), "TZ": "Europe/Rome"})
    shutil.copytree(lived, machine.home)
    return machine


@pytest.fixture
def console(machine: Machine) -> Iterator[Callable[[], str]]:
    """Run `claudius console`; the function returns a fresh address that enters it, once."""
    with serving_console(machine) as address:
        yield address


def _as_long_as_browsing(fixture_name: str, config: pytest.Config) -> Literal["session", "module"]:
    """Keep one browser for a run of browser tests alone; no event loop of another test may run beside the browser's."""
    del fixture_name
    return "session" if config.getoption("markexpr").startswith("browser") else "module"


@pytest.fixture(scope=_as_long_as_browsing)
def tabs(lived: Path) -> Iterator[Callable[..., Tab]]:
    """Open one browser; the function opens a tab."""
    del lived  # played before
    with browser() as tab:
        yield tab
