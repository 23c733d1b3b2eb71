"""Decide what a turn asks of the model: its attention, its steps and the user models it shows."""
