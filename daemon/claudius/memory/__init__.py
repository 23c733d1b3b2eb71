"""The hands of memory: the store's door, its SQLite, user models, and their archive in git."""
