"""One turn of thought: pure functions between one reading and one commit, and one place that awaits a model."""
