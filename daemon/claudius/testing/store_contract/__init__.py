"""The cases of a store's contract, by what they are about."""
