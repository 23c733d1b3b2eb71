"""The tools that ship, and what speaks to those of others."""
