"""Which models are asked, and the client of each: with the configured key, address and the like if they belong to its provider, and with
what that provider's own variable says otherwise. A key never goes to another provider.
"""

from collections.abc import Mapping
from typing import TypedDict

from holdfast.agents.wires import providers
from holdfast.config import Agent, BadConfig
from holdfast.core.errors import BadInput
from holdfast.ports.models import ModelClient, ModelSettings, Transcriber


class _Access(TypedDict):
    """How a model of some provider is reached."""

    key: str | None
    base_url: str | None
    timeout_s: float


class Choice:
    """`key`: the configured one, of the provider of `agent.model`. Raises `BadConfig` for a model that cannot be asked. `transcriber`: the
    configured one.
    """

    def __init__(self, agent: Agent, *, key: str | None, environment: Mapping[str, str]) -> None:
        self._agent, self._key, self._environment = agent, key, environment
        for name in (*agent.choices, *agent.fallbacks, *filter(None, [agent.title_model])):
            self.client(name)
        self.transcriber: Transcriber | None = self._transcriber(agent.transcriber) if agent.transcriber else None

    def models(self, chosen: str | None) -> tuple[str, ...]:
        """Those to ask, in order, for a conversation that chose this one. One that may no longer be chosen is not asked."""
        first = chosen if chosen in self._agent.choices else self._agent.model
        return tuple(dict.fromkeys((first, *self._agent.fallbacks)))

    def settings(self, name: str) -> ModelSettings:
        """With `extra` if that is for this model's provider: others may refuse what they do not know."""
        agent = self._agent
        extra = agent.extra if self._is_own(providers.choice(name).provider) else {}
        return ModelSettings(max_tokens=agent.max_tokens, temperature=agent.temperature, effort=agent.effort or None, extra=extra)

    def _is_own(self, provider: str) -> bool:
        """Whether the configured key, address and the like are for this provider."""
        return provider == providers.choice(self._agent.model).provider

    def client(self, name: str) -> ModelClient:
        own, takes = self._is_own(providers.choice(name).provider), self._agent.takes
        try:
            return providers.client(name, takes=frozenset(takes) if own and takes is not None else None, **self._access(name))
        except BadInput as error:
            raise BadConfig(f"The model {name} cannot be asked. {error}") from error

    def _transcriber(self, name: str) -> Transcriber:
        try:
            # Only the settings know it: the list's prices are those of text, not of sound.
            own = self._agent.prices.get(name)
            return providers.transcriber(name, price=own.cost if own is not None and own.priced else None, **self._access(name))
        except BadInput as error:
            raise BadConfig(f"The transcriber {name} cannot be asked. {error}") from error

    def _access(self, name: str) -> "_Access":
        provider = providers.choice(name).provider
        own, known = self._is_own(provider), providers.PROVIDERS.get(provider)
        variable = known.key_variable if known is not None else None
        return _Access(
            key=(self._key if own else None) or (self._environment.get(variable) if variable else None),
            base_url=(self._agent.base_url if own else None) or None,
            timeout_s=self._agent.timeout_s,
        )
