"""What both Claude transports have in common: the command, its process, what it is told and what it says.

Source of every cure here: spec/chat.md §9.1 and spec/security.md §8, measured with Claude Code 2.1.330.
"""
