"""The documents that commands print as `--json` and the console serves: one builder each, below both."""
