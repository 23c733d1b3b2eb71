"""The built-in subprocesses: what the soul does while a conversation is idle."""
