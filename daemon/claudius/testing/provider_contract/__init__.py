"""The cases of a voice's contract, by what they are about."""
