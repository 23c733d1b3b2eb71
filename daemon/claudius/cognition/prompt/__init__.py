"""Build the prompts of a turn, and the snapshots from which they can be rebuilt."""
