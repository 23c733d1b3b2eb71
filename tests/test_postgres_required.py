"""A run that was to have PostgreSQL fails if the tests that need one were skipped."""

from types import SimpleNamespace
from typing import Any

import pytest

from conftest import pytest_sessionfinish
from lab import postgres


@pytest.mark.parametrize(
    ("required", "reason", "code"), [("1", postgres.MISSING, 1), ("", postgres.MISSING, 0), ("1", "slow", 0)]
)
def test_scale_a_skipped_test_fails_where_a_server_is_required(
    required: str, reason: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a test that was skipped for want of a server fails the run, and only if one is required."""
    monkeypatch.setenv(postgres.REQUIRED, required)
    reporter = SimpleNamespace(stats={"skipped": [SimpleNamespace(longrepr=("file", 1, f"Skipped: {reason}"))]})
    plugins = SimpleNamespace(get_plugin=lambda _: reporter)
    session: Any = SimpleNamespace(config=SimpleNamespace(pluginmanager=plugins), exitstatus=0)

    pytest_sessionfinish(session)

    assert session.exitstatus == code
