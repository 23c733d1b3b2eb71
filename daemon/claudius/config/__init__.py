"""Load, validate and hold the settings and secrets."""
