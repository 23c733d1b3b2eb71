"""Shared ground of the test suite: how hard hypothesis looks, and a home of one's own for every test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from claudius.home import Home

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]}
settings.register_profile("push", max_examples=300, **_COMMON)
settings.register_profile("nightly", max_examples=20_000, **_COMMON)
settings.load_profile(os.environ.get("CLAUDIUS_TEST_PROFILE", "push"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long forms unless they are asked for by `-m`."""
    if config.getoption("-m"):
        return
    skip = pytest.mark.skip(reason="long form: .ci/run nightly")
    for item in items:
        if "nightly" in item.keywords:
            item.add_marker(skip)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Give an empty, private home."""
    made = Home(tmp_path / "home")
    made.create()
    return made
