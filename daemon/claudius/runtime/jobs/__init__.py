"""The jobs of the clock: one module each, with its timing, its gate and its work."""
