"""Decide what of a reply may be said: the fallback ladder, the output gate, link rewriting and splitting into posts."""
