"""Networks that the soul listens and speaks on; each module is loaded by its import string alone."""
