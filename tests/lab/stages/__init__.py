"""The people of the loopback networks, as the adapter contract drives them."""
