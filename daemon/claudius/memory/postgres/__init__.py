"""The store in PostgreSQL: the topics of `memory/sql/` on another connection. Imported if `store.url` says so."""
