"""Claude Code: a plugin that lets the soul into a session, and what its hooks do there."""
