"""What holds on every network is said once."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from both import SIDES, Side


@pytest.fixture(params=sorted(SIDES))
async def side(request: pytest.FixtureRequest) -> AsyncIterator[Side]:
    """Give one network after the other."""
    async with SIDES[request.param]() as running:
        yield running
