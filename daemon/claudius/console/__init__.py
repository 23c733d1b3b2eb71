"""`claudius console`: a local page to look at the soul, served by a separate process."""
