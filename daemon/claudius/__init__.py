"""Claudius: a soul that lives in your chat."""

__version__ = "0.1.0"
