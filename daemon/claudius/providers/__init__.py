"""Providers of model replies. Each module is loaded by its import string when it is first needed."""
