"""Persistence: the store by topic, the two databases that can hold it, and the git archive of user models."""
