"""The store in PostgreSQL: the topics of `memory/` on another connection. Imported if `store.url` says so."""
