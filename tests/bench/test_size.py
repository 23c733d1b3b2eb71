"""P14, counted: how many bytes a turn leaves behind, for a workspace of any size."""

from pathlib import Path

import p14_size as size

BENCH = Path(__file__).parents[2] / "bench"
VISITS = 24


async def test_a_turn_leaves_four_kilobytes_at_most_in_a_workspace_of_any_size(tmp_path: Path) -> None:
    """P14: at most 4 kB a turn over a year's mix, and no more with 2,000 members than with 20."""
    few = await size.year(tmp_path / "few", VISITS, size.FEW)
    many = await size.year(tmp_path / "many", VISITS, size.MANY)

    assert few.turns == many.turns
    assert many.kb_a_turn <= size.bound("P14.turn").floor
    assert many.bytes <= size.FLAT.floor * few.bytes
