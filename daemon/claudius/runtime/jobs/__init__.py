"""The scheduled jobs: one module each, with its timing, its gate and its work."""
