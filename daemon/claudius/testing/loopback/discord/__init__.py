"""A Discord on loopback: gateway, REST v10, interactions, people, and faults on order; driven by discord.py only."""
