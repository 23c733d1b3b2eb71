"""What can be read off words by rule, below language: no clock, no model, no chance."""
