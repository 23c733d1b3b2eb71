"""The life of the process that takes turns."""
