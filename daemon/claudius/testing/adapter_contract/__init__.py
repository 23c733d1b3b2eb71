"""The contract of every adapter, and the people of a network as it drives them."""
