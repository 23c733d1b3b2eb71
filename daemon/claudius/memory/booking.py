"""Book the acts of a turn in its own transaction, and gather the receipts of what was really done."""

from __future__ import annotations

from claudius.acts import PlanCancelled, PlanMade, PlanMoved, ZoneSet
from claudius.intent import Intent
from claudius.memory.database import Database
from claudius.memory.facts import book_fact
from claudius.memory.plans import book_plan


def book_acts(db: Database, intent: Intent) -> tuple[str, ...]:
    """Book what a turn does beyond its words; return a receipt for each act that has one, in order."""
    receipts: list[str] = []
    for act in intent.acts:
        match act:
            case PlanMade() | PlanMoved() | PlanCancelled() | ZoneSet():
                receipts.append(book_plan(db, intent, act))
            case _:
                receipts.append(book_fact(db, intent, act))
    return tuple(filter(None, receipts))
