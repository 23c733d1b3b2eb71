"""Read the acts of a reply and check them against what stood in its prompt; a refused one says why. Pure.

Source: the design of acts, sections 2 and 10.
"""

from __future__ import annotations
