"""Share the code of both Claude transports: the command, its process, its input and its output.

Source of every workaround here: the chat design, section 9.1, and the security design, section 8; measured with Claude
Code 2.1.330.
"""
