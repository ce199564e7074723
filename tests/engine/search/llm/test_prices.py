from pathlib import Path

import pytest

from engine.errors import ModelError
from engine.search.llm.prices import Price, read_prices
from storage.run.models import TokenUsage

PRICE = Price(input=2.0, cached_input=0.5, output=8.0)


def test_cached_tokens_are_cheaper_and_reasoning_is_output() -> None:
    cost = PRICE.cost(TokenUsage(input=1_000_000, output=500_000, cached=400_000, reasoning=300_000))
    assert cost == pytest.approx(0.6 * 2.0 + 0.4 * 0.5 + 0.5 * 8.0)
    assert Price(2.0, None, 8.0).cost(TokenUsage(1_000_000, 0, 400_000)) == pytest.approx(2.0)


@pytest.mark.parametrize("usage", [TokenUsage(), TokenUsage(input=5), TokenUsage(output=5)])
def test_what_is_not_known_has_no_cost_and_not_the_cost_zero(usage: TokenUsage) -> None:
    assert PRICE.cost(usage) is None
    assert Price().cost(TokenUsage(1, 1)) is None
    assert Price(0.0, 0.0, 0.0).cost(TokenUsage(1, 1)) == 0.0


def test_a_price_file_is_read_and_none_means_no_price(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    assert read_prices(file) == {}
    file.write_text('["gpt-x.1"]\ninput = 1\noutput = 4.5\nwindow = 200000\n')
    assert read_prices(file) == {"gpt-x.1": Price(input=1, output=4.5, window=200_000)}


@pytest.mark.parametrize(
    "text",
    ["[m]\ninput = -1", "[m]\nprice = 1", "m = 3", "[m]\nwindow = 1.5", "[m]\ninput = nan", "[m", "[a.b]\ninput = 1"],
)
def test_a_price_file_with_a_fault_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "prices.toml").write_text(text)
    with pytest.raises(ModelError, match="prices.toml"):
        read_prices(tmp_path / "prices.toml")
