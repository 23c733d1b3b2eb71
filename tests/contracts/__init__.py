"""The contracts that the tests hold parts of the daemon to, and which no one outside needs."""
