"""What a response costs and how much a model can be given: from the settings, or from the bundled list."""

import asyncio

import pytest
from structlog.testing import capture_logs

from holdfast.agents.prices import DEFAULT_WINDOW, UNKNOWN_WINDOW, Listed, Prices, find
from holdfast.config.agent import ModelPrice
from holdfast.core.events import Usage

MILLION = Usage(input=1_000_000, output=100_000, cached=600_000, stored=200_000)


def cost(prices: Prices, model: str, used: Usage = MILLION) -> int | None:
    return asyncio.run(prices.cost(model, used))


def window(prices: Prices, model: str) -> int:
    return asyncio.run(prices.window(model))


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        (ModelPrice(input=3, output=15), 3_000_000 + 1_500_000),
        (ModelPrice(input=3, output=15, cached=0.3), 400_000 * 3 + 600_000 * 0.3 + 1_500_000),
        (ModelPrice(input=3, output=15, cached=0.3, stored=3.75), 200_000 * 3 + 600_000 * 0.3 + 200_000 * 3.75 + 1_500_000),
        (ModelPrice(input=0, output=0), 0),
    ],
)
def test_a_price_of_the_settings_counts_cached_tokens_at_their_own_price(price: ModelPrice, expected: float) -> None:
    assert cost(Prices({"chat:mine": price}), "chat:mine") == expected


def test_the_settings_come_before_the_list_and_a_model_in_neither_has_no_price() -> None:
    def listed(provider: str, name: str) -> Listed | None:
        return Listed(lambda used: used.input / 1e6, 9000) if (provider, name) == ("google", "g") else None

    prices = Prices({"gemini:h": ModelPrice(window=5000), "openai:o": ModelPrice(input=1, output=0)}, find=listed)
    assert [cost(prices, name) for name in ("gemini:g", "gemini:h", "openai:o", "ollama:g", "chat:g")] == [
        1_000_000,
        None,
        1_000_000,
        None,
        None,
    ]
    assert [window(prices, name) for name in ("gemini:g", "gemini:h", "openai:o", "vllm:g")] == [9000, 5000, DEFAULT_WINDOW, DEFAULT_WINDOW]
    assert {window(prices, f"{name}:g") for name in ("ollama", "llamacpp", "lmstudio", "chat")} == {UNKNOWN_WINDOW}, "they may cut silently"
    assert window(Prices(window=4000, find=listed), "gemini:g") == 4000
    assert cost(prices, "gemini:g", Usage()) is None, "a server that tells no usage tells nothing about the cost"


def test_the_list_knows_prices_and_windows_of_models_by_provider() -> None:
    """genai-prices, offline: the bundled list."""
    prices = Prices(find=find)
    plain, cached = cost(prices, "anthropic:claude-sonnet-4-5", Usage(input=1000, output=100)), Usage(input=1000, output=100, cached=900)
    assert plain == 4500 and cost(prices, "anthropic:claude-sonnet-4-5", cached) == 300 + 270 + 1500
    assert window(prices, "anthropic:claude-sonnet-4-5") == 200_000 and window(prices, "openai:no-such-model") == DEFAULT_WINDOW
    assert cost(prices, "openai:no-such-model") is None and cost(prices, "ollama:qwen3") is None


async def _expected(prices: Prices, names: list[str]) -> None:
    for name in (*names, *names):
        prices.expect(name)
    for name in names:
        await prices.cost(name, MILLION)


def test_a_price_is_looked_up_once_and_only_where_the_settings_have_none() -> None:
    asked: list[str] = []
    prices = Prices({"openai:mine": ModelPrice(input=1, output=1)}, find=lambda provider, name: asked.append(name))
    asyncio.run(_expected(prices, ["openai:mine", "openai:other", "ollama:local"]))
    assert asked == ["other"]


@pytest.mark.parametrize("used", [Usage(input=10, output=5, cached=20), Usage(input=10, output=5, stored=20), Usage(input=10, output=-5)])
def test_a_count_that_contradicts_itself_has_no_cost_and_is_logged_once(used: Usage) -> None:
    """P3: the answer was paid for; what a server counted wrongly must not fail it."""
    prices, name = Prices(find=find), "anthropic:claude-sonnet-4-5"
    with capture_logs() as logged:
        assert cost_of(prices, name, used, times=3) == [None] * 3
    assert [("has no price" in entry["event"], entry["model"]) for entry in logged] == [(True, name)]
    assert cost_of(Prices(find=find), name, Usage(input=1000, output=100), times=1) == [4500]


def cost_of(prices: Prices, model: str, used: Usage, *, times: int) -> list[int | None]:
    async def ask() -> list[int | None]:
        return [await prices.cost(model, used) for _ in range(times)]

    return asyncio.run(ask())
