"""A Slack on loopback: Web API, Socket Mode, people, and faults on order; driven by Slack's own Python clients only."""
