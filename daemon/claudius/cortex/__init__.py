"""The second mind: it looks at what happened, later and from outside, and leaves assessments, beliefs and directives.

It sees no prompt and no conversation of the first mind; the two meet in the store.
"""
