"""The lab: loopback servers of the networks and of models, a life in virtual time with its mutants, and the oracle."""
