"""What both Claude transports have in common: the command, its process, what it is told and what it says.

Source of every cure here: the chat design, section 9.1, and the security design, section 8; measured with Claude Code
2.1.330.
"""
