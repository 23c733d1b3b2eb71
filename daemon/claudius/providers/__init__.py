"""The voices: one module each, loaded by import string when it is asked for."""
