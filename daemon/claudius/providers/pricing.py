"""Price a call from the data of genai-prices."""

from __future__ import annotations

from msgspec.structs import replace

from claudius.provider import Usage


def priced(usage: Usage, model: str, where: str, *, write_1h_tokens: int = 0) -> Usage:
    """Add the price in dollars, or None if the list lacks the model or the place, as for a server at home.

    `where` is a vendor's name in the list ("anthropic") or an API's URL. `write_1h_tokens` is the number of tokens
    written to the one-hour cache, which cost more. The list is read at the first call (0.3 s, no network), or by
    `warm`.
    """
    return replace(usage, cost_usd=_cost_usd(usage, model, where, write_1h_tokens))


def warm() -> None:
    """Read the price list now, if one is installed."""
    try:
        import genai_prices  # noqa: F401, PLC0415 - 0.3 s, only for a real model
    except ImportError:
        return


def _cost_usd(usage: Usage, model: str, where: str, write_1h_tokens: int) -> float | None:
    try:
        import genai_prices  # noqa: PLC0415 - 0.3 s, only for a real model
    except ImportError:
        return None
    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_1h_tokens=write_1h_tokens or None,
        output_tokens=usage.output_tokens,
    )
    try:
        if "://" in where:
            found = genai_prices.calc_price(counted, model_ref=model, provider_api_url=where)
        else:
            found = genai_prices.calc_price(counted, model_ref=model, provider_id=where)
    except LookupError:
        return None
    return float(found.total_price)
