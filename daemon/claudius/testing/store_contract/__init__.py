"""The contract cases of every store, by topic."""
