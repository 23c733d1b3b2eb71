"""reply: to be described."""
