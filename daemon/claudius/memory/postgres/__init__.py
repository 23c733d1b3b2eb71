"""The store in PostgreSQL: the topics of `memory/sqlite/` on another connection. Imported if `store.url` says so."""
