"""Pure functions of one plain argument each: what the soul's rules say, for tables of checks."""

from claudius.testing.ledger_probes import farming, info_score

__all__ = ["farming", "info_score"]
