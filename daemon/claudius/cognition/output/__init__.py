"""output: to be described."""
