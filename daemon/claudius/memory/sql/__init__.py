"""The topics of the store in SQL, for either database: they know a connection and the named queries, no more."""
