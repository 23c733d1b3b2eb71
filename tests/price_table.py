"""Make providers/prices.json from the package `genai-prices`, before a release: `python tests/price_table.py`."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from importlib.metadata import version
from itertools import chain
from typing import Any

import genai_prices.types as listed
import msgspec
from genai_prices.data import providers

from tree import PACKAGE

PATH = PACKAGE / "providers" / "prices.json"
LISTED = "genai-prices"


def table(day: date) -> dict[str, Any]:
    """Return the list prices in force at noon UTC of a day."""
    return {"made": day.isoformat(), "of": version(LISTED), "places": {one.id: _place(one, day) for one in providers}}


def text(found: dict[str, Any]) -> str:
    """Return a table as JSON, one name a line."""
    return re.sub(r'([}\]],|":{)(?=")', r"\1" "\n", msgspec.json.encode(found).decode()) + "\n"


def _place(place: listed.Provider, day: date) -> dict[str, Any]:
    """Return a place's prices by a model's exact name, and by a pattern of names. The first that fits counts."""
    others = place.fallback_model_providers or ()
    named: dict[str, list[float]] = {}
    like: dict[str, list[float]] = {}
    for model in chain(place.models, *(one.models for name in others for one in providers if one.id == name)):
        if rates := _rates(model.get_prices(datetime.combine(day, time(12), UTC))):
            for clause in _clauses(model.match):
                if isinstance(clause, listed.ClauseEquals):
                    named.setdefault(clause.equals.lower(), rates)
                else:
                    like.setdefault(_pattern(clause), rates)
    return {"url": place.api_pattern, "named": named, "like": like}


def _rates(prices: listed.ModelPrice) -> list[float] | None:
    """Return dollars a million tokens: input, output, read from the cache, written to it for 5 minutes, for an hour."""
    if not any(vars(prices).values()):
        return [0.0] * 5
    if prices.input_mtok is None or prices.output_mtok is None:
        return None
    write = prices.cache_write_mtok or prices.input_mtok
    found = prices.input_mtok, prices.output_mtok, prices.cache_read_mtok, write, prices.cache_write_1h_mtok or write
    plain = [price if price is None else float(getattr(price, "base", price)) for price in found]  # the lowest tier
    return [plain[0] if price is None else price for price in plain]


def _clauses(match: Any) -> Iterator[Any]:
    if isinstance(match, listed.ClauseOr):
        for one in match.or_:
            yield from _clauses(one)
    else:
        yield match


def _pattern(match: Any) -> str:
    """Return what `re.match` finds at the start of a name in small letters."""
    match match:
        case listed.ClauseStartsWith(words):
            return re.escape(words.lower())
        case listed.ClauseEndsWith(words):
            return f".*{re.escape(words.lower())}$"
        case listed.ClauseContains(words):
            return f".*{re.escape(words.lower())}"
        case listed.ClauseRegex(regex):
            return regex if regex.startswith("^") else f".*{regex}"
        case listed.ClauseAnd(clauses):
            return "".join(f"(?={_pattern(one)})" for one in clauses)
    raise TypeError(match)


if __name__ == "__main__":
    PATH.write_text(text(table(datetime.now(UTC).date())), "utf-8")
