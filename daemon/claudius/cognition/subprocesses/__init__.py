"""The subprocesses that ship: what the soul does while a conversation is idle."""
