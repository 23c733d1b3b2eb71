"""The Agent SDK with its own bundled command against the loopback model."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from claudius.config import Loaded
from claudius.home import Home
from claudius.providers import claude_cli
from claudius.testing.check_provider import CASES, Case, Voice, check_provider
from claudius.testing.loopback.model import ModelServer




@pytest.fixture
def voice(server: ModelServer, settings: Callable[..., Loaded], home: Home, claude_home: Path) -> Voice:
    """Give the client under test."""
    return Voice(
        make=lambda: claude_cli.build(settings(), home), say=server.say, server=server, asks_again=True, is_exact=False
    )


@pytest.mark.parametrize("case", [case for case in CASES if "exact" not in case.needs], ids=str)
async def test_it_keeps_the_contract(case: Case, voice: Voice) -> None:
    """Each numbered rule of the contract holds for the real library and the real command."""
    await check_provider(case, voice)
