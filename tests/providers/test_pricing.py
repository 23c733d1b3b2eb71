"""The price of a call."""

from datetime import date

import msgspec
import pytest

import price_table
from claudius.provider import Message, Request, Usage, estimate
from claudius.providers.replies import priced

USED = Usage(input_tokens=400, cache_read_tokens=500, cache_write_tokens=100, output_tokens=100)


def test_a_known_model_has_its_price() -> None:
    """$3 in, $0.30 read, $3.75 written, $15 out per million: the list price of Sonnet 4.5."""
    assert priced(USED, "claude-sonnet-4-5", "anthropic").cost_usd == pytest.approx(0.003225)


def test_an_hours_write_costs_more() -> None:
    """A write for an hour costs $6 per million instead of $3.75."""
    assert priced(USED, "claude-sonnet-4-5", "anthropic", write_1h_tokens=100).cost_usd == pytest.approx(0.00345)


@pytest.mark.parametrize(
    ("model", "where"),
    [("no-such-model", "anthropic"), ("llama3", "http://127.0.0.1:11434/v1"), ("gpt-5", "http://localhost/v1")],
)
def test_an_unknown_price_is_none(model: str, where: str) -> None:
    """An unknown price is None, not zero: a local server, or a model that the list lacks."""
    assert priced(USED, model, where).cost_usd is None


def test_a_vendor_is_known_by_its_url() -> None:
    """A chat-completions server is priced by its address."""
    assert priced(USED, "llama-3.3-70b-versatile", "https://api.groq.com/openai/v1").cost_usd


def test_the_list_is_made_of_the_package_of_prices() -> None:
    """The list is what the script makes of the release that requirements.lock pins."""
    shipped = price_table.PATH.read_text("utf-8")
    made = date.fromisoformat(msgspec.json.decode(shipped)["made"])

    assert shipped == price_table.text(price_table.table(made)), "write it: python tests/price_table.py"


def test_the_counts_are_not_changed() -> None:
    """Pricing adds only the price to a usage."""
    usage = priced(USED, "claude-sonnet-4-5", "anthropic")

    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (400, 500, 100)


def test_an_estimate_counts_every_part_and_says_that_it_is_one() -> None:
    """The estimate is characters / 4 of system, history and tail, and of the reply."""
    request = Request(system="s" * 40, history=(Message("user", "h" * 40),), tail="t" * 40, max_tokens=1)

    assert estimate(request, "r" * 20) == Usage(input_tokens=30, output_tokens=5, estimated=True)
