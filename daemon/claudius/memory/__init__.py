"""Persistence: the store's protocols, their SQLite implementation, user models, and the git archive of them."""
