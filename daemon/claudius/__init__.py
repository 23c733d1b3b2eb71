"""Claudius: a soul that lives in your chat."""

__version__ = "0.2.0"
