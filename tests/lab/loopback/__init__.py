"""Loopback servers: what the real client libraries talk to in tests, honest about what they accept and refuse."""
