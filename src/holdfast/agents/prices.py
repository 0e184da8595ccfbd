"""What a response of a model costs, and how much a model can be given: from the settings, else from the list of genai-prices, which comes
with the extra `prices`. That list is read from disk once, in a thread, and never updated over the network.
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import structlog

from holdfast.config.agent import ModelPrice
from holdfast.core.events import Usage

# Where neither the settings nor the list know a model.
DEFAULT_WINDOW = 128_000
# Of a server that somebody started with a window of their own choice, or with a small one by default. Some cut what is too long for it
# without a word, so that a guess that is too large loses the beginning of every conversation.
UNKNOWN_SERVERS = frozenset({"ollama", "llamacpp", "lmstudio", "chat"})
UNKNOWN_WINDOW = 8_192
# By our names of providers, what the list calls them. Who runs at home is not in it.
LISTED = {
    "openai": "openai",
    "anthropic": "anthropic",
    "openrouter": "openrouter",
    "groq": "groq",
    "mistral": "mistral",
    "deepseek": "deepseek",
    "gemini": "google",
    "google-gla": "google",
    "google-vertex": "google",
    "bedrock": "aws",
    "azure": "azure",
    "cohere": "cohere",
    "xai": "x-ai",
}

log = structlog.get_logger()


class Unaccountable(Exception):
    """A provider's numbers contradict each other, for example more tokens out of a cache than came in at all."""


class Listed(msgspec.Struct, frozen=True):
    """What the list has of a model. `cost`: of a response, in US dollars; raises `Unaccountable`."""

    cost: Callable[[Usage], float]
    window: int | None


class Prices:
    """`set_`: from the settings, by PROVIDER:NAME. `window`: for every model that has none of its own there. `find`: looks a provider and
    a name up in the list; it may take long, so it runs in a thread. None: there is no list.
    """

    def __init__(
        self,
        set_: Mapping[str, ModelPrice] | None = None,
        *,
        window: int | None = None,
        find: "Callable[[str, str], Listed | None] | None" = None,
    ) -> None:
        self._set, self._window, self._find = dict(set_ or {}), window, find
        self._found: dict[str, asyncio.Future[Listed | None]] = {}
        self._told: set[str] = set()
        self._odd: set[str] = set()

    def expect(self, model: str) -> None:
        """Its price will be asked for: looks it up while something else is waited for."""
        own = self._set.get(model)
        if own is None or not own.priced:
            self._begin(model)

    def _begin(self, model: str) -> None:
        provider, _, name = model.partition(":")
        if self._find is not None and provider in LISTED and model not in self._found:
            self._found[model] = asyncio.get_running_loop().run_in_executor(None, self._find, LISTED[provider], name)

    async def cost(self, model: str, usage: Usage) -> int | None:
        """In millionths of a US dollar; None if the price is not known, or what was used is not clear, which is said once for each model.
        The response was paid for, so nothing about its price may fail it.
        """
        if not usage.input and not usage.output:
            return None  # Its provider did not say.
        own = self._set.get(model)
        if own is not None and own.priced:
            return round(own.cost(usage))
        listed = await self._look_up(model)
        if listed is None:
            if model not in self._told:
                self._told.add(model)
                log.info("no price is known for a model; limits of money do not count it", model=model)
            return None
        try:
            return round(1_000_000 * listed.cost(usage))
        except Unaccountable as error:
            if model not in self._odd:
                self._odd.add(model)
                log.warning("a provider's count of tokens has no price; limits of money do not count it", model=model, why=str(error))
            return None

    async def window(self, model: str) -> int:
        """How many tokens a request and its response may have together."""
        if configured := self.set_window(model):
            return configured
        listed = await self._look_up(model)
        return (listed.window if listed is not None else None) or default_window(model)

    def set_window(self, model: str) -> int | None:
        """As the settings say."""
        own = self._set.get(model)
        return own.window if own is not None and own.window else self._window

    async def known(self, model: str) -> bool:
        """Whether its price is."""
        own = self._set.get(model)
        return (own is not None and own.priced) or await self._look_up(model) is not None

    async def _look_up(self, model: str) -> Listed | None:
        self._begin(model)
        return await asyncio.shield(self._found[model]) if model in self._found else None  # Others may wait for it, too.


def default_window(model: str) -> int:
    return UNKNOWN_WINDOW if model.partition(":")[0] in UNKNOWN_SERVERS else DEFAULT_WINDOW


def find(provider: str, name: str) -> Listed | None:
    """In the list that came with genai-prices. None if it is not there, or the extra is not installed."""
    try:
        from genai_prices import Usage as Used
        from genai_prices import calc_price
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None

    def cost(usage: Usage) -> float:
        try:
            used = Used(
                input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=usage.cached, cache_write_tokens=usage.stored
            )
            return float(calc_price(used, model_ref=name, provider_id=provider).total_price)
        except (LookupError, ValueError, ArithmeticError) as error:
            raise Unaccountable(str(error)) from error

    try:
        _, model = get_snapshot().find_provider_model(name, None, provider, None)
        cost(Usage(input=1, output=1))
    except (LookupError, ValueError, Unaccountable):
        return None
    return Listed(cost, model.context_window)
