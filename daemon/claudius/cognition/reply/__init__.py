"""Read a model's reply: tags, the streaming parser, and the values of its sections."""
