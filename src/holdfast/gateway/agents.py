"""The agents of a gateway, and which of them a turn is for."""

from collections.abc import Mapping

from holdfast.core import model_choice
from holdfast.core.model_choice import AgentGone
from holdfast.ports.agents import Agent


class Agents:
    """`default` answers where no other one was chosen, with whichever of its models was. `named`: what may be chosen instead."""

    def __init__(self, default: Agent, named: Mapping[str, Agent] | None = None) -> None:
        self.default, self._named = default, named or {}

    def of(self, chosen: str | None) -> Agent:
        """Raises `AgentGone`."""
        if chosen is None or not model_choice.is_agent(chosen):
            return self.default
        if chosen not in self._named:
            raise AgentGone(chosen)
        return self._named[chosen]

    @property
    def all(self) -> tuple[Agent, ...]:
        """Each once."""
        return tuple({id(agent): agent for agent in (self.default, *self._named.values())}.values())
