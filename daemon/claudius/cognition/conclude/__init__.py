"""conclude: to be described."""
