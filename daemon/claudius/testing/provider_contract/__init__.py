"""The contract cases of every provider, by topic."""
