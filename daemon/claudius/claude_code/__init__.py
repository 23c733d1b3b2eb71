"""Claude Code: a plugin that brings the soul into a session, and what its hooks do there."""
