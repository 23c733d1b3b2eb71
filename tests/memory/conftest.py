"""Fixtures of the memory's tests."""

from collections.abc import AsyncIterator

import pytest

from archiving import Kept
from claudius.home import Home


@pytest.fixture
async def kept(home: Home) -> AsyncIterator[Kept]:
    """Yield a home with a store and an archive."""
    begun = await Kept.begin(home)
    yield begun
    await begun.end()
