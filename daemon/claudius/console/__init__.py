"""`claudius console`: a local page to look at the soul, served by a process of its own beside the daemon."""
