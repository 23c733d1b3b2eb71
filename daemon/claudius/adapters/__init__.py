"""Adapters for the networks that the soul listens and speaks on. Each module is loaded by its import string."""
