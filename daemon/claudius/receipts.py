"""Write the receipts of what was really done, in a fixed form that no model writes and no language is needed for. Pure.

Source: the design of acts, section 10.
"""

from __future__ import annotations

PLANNED, DROPPED, CHANGED, ZONE = "⏰", "✖", "✎", "◷"
"""What a receipt begins with: a plan made or moved, one dropped, a fact ended or deleted, a zone set."""
