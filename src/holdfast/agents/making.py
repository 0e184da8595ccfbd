"""How the configured agents are made: that of `[agent]`, which answers where nothing else was chosen, and those of `[agents.NAME]`."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.agents.demo import DemoAgent
from holdfast.agents.lazy import LazyAgent
from holdfast.config import Agent as AgentSettings
from holdfast.config import Config, model_key
from holdfast.config import agents as named_agents
from holdfast.config.agent import wants_titles, words
from holdfast.config.agents import NamedAgent
from holdfast.core.redaction import Secrets
from holdfast.ports.agents import Agent
from holdfast.ports.process import Clock, Ids

if TYPE_CHECKING:
    from holdfast.agents.acp import KeptAgents
    from holdfast.agents.choice import Choice
    from holdfast.agents.prices import Prices
    from holdfast.agents.titles import Asked
    from holdfast.ports.models import Transcriber
    from holdfast.ports.titles import Titler


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What agents stand on. `modules`: the folder where modules are looked for, `folder`: where a session works, given its id and the
    folder that was chosen for it, `work`: the same, made where it is missing, `read`: the bytes of a blob, `kept`: the processes of agents
    that are other programs.
    """

    home: Path
    environment: Mapping[str, str]
    modules: Path
    folder: Callable[[str, str | None], Path]
    work: Callable[[str, str | None], Path]
    read: Callable[[str], Awaitable[bytes]]
    clock: Clock
    secrets: Secrets
    ids: Ids
    kept: "KeptAgents | None" = None


class Making:
    """Of one configuration. What it does not ask for is not loaded. Raises `BadConfig` where the agent of `[agent]` cannot be had."""

    def __init__(self, config: Config, ground: Ground) -> None:
        self._config, self._ground = config, ground
        self._asked: dict[str | None, Asked | None] = {}
        self._choice: Choice | None = None
        if config.agent.model:
            self._choice = self._of_models(config.agent, model_key(config.agent, config.home, ground.environment))

    @property
    def transcriber(self) -> "Transcriber | None":
        return self._choice.transcriber if self._choice is not None else None

    def titler(self) -> "Titler | None":
        """What gives conversations their titles, where that is wanted and some model answers."""
        models = self._config.agent.model or any(named.model for named in self._config.agents.values())
        if not models or not wants_titles(self._config.agent):
            return None
        from holdfast.agents.titles import ModelTitles

        return ModelTitles(self._asked_for, read=self._ground.read)

    def _asked_for(self, chosen: str | None) -> "Asked | None":
        """The model that is asked for the title of a conversation that has chosen this. Raises `BadConfig`."""
        name = chosen if chosen in self._config.agents else None
        if name not in self._asked:
            self._asked[name] = self._titles_of(name)
        asked = self._asked[name]
        if asked is None or name is not None or self._config.agent.title_model or self._choice is None:
            return asked
        return msgspec.structs.replace(asked, model=self._choice.models(chosen)[0])

    def _titles_of(self, name: str | None) -> "Asked | None":
        from holdfast.agents.titles import Asked

        agent = self._config.agent
        if agent.title_model or (name is None and self._choice is not None):
            settings, choice = agent, self._choice
        else:
            first = None if agent.module or agent.acp else next(iter(self._config.agents), None)
            named = self._config.agents.get(name or first or "")
            if named is None or not named.model:
                return None
            settings, choice = self._of_named(named)
        if choice is None:
            return None
        model = agent.title_model or choice.models(None)[0]
        return Asked(model=model, client=choice.client, settings=choice.settings, prices=self._prices(settings))

    def default(self) -> Agent:
        """The one of `[agent]`, else the first of `[agents]`, else the demo."""
        settings, named = self._config.agent, next(iter(self._config.agents), None)
        if self._choice is not None:
            return self._with_models(settings, self._choice)
        if settings.module:
            return self._own(settings.module)
        if settings.program is not None:
            return self._program(settings.program, settings.acp)
        return self._named(named, self._config.agents[named]) if named is not None else DemoAgent()

    def named(self, default: Agent) -> dict[str, Agent]:
        """Those of `[agents]`, by name. The `default` may be the first of them."""
        made: dict[str, Agent] = {name: self._later(name, named) for name, named in self._config.agents.items()}
        if made and self._choice is None and not self._config.agent.module and not self._config.agent.acp:
            made[next(iter(made))] = default
        return made

    def _later(self, name: str, named: NamedAgent) -> LazyAgent:
        # In a thread: a module of somebody's may take seconds to load, and others speak meanwhile.
        return LazyAgent(name, lambda: asyncio.to_thread(self._named, name, named))

    def _named(self, name: str, named: NamedAgent) -> Agent:
        if named.demo:
            return DemoAgent()
        if named.module:
            return self._own(named.module)
        if named.acp:
            return self._program(name, named.acp)
        return self._with_models(*self._of_named(named))

    def _of_named(self, named: NamedAgent) -> "tuple[AgentSettings, Choice]":
        settings = named_agents.as_agent(named, self._config.agent)
        key = named_agents.key(named, self._config.agent, self._config.home, self._ground.environment)
        if named.api_key_file and key:  # It may have been written since the start.
            self._ground.secrets.know({named.api_key_file: key})
        return settings, self._of_models(settings, key)

    def _own(self, module: str) -> Agent:
        from holdfast.agents import own

        return own.load(module, self._ground.modules)

    def _program(self, name: str, command: str) -> Agent:
        from holdfast.agents import acp

        ground, kept = self._ground, self._ground.kept
        assert kept is not None
        return acp.AcpAgent(
            acp.Program(name=name, words=words(command), environment=acp.variables(ground.environment)),
            acp.Ground(kept=kept, ids=ground.ids, folder=ground.work, read=ground.read, secrets=ground.secrets),
        )

    def _of_models(self, settings: AgentSettings, key: str | None) -> "Choice":
        from holdfast.agents.choice import Choice

        return Choice(settings, key=key, environment=dict(self._ground.environment))

    def _with_models(self, settings: AgentSettings, choice: "Choice") -> Agent:
        from holdfast.agents.instructions import Instructions
        from holdfast.agents.model import ModelAgent

        ground = self._ground
        return ModelAgent(
            models=choice.models,
            client=choice.client,
            instructions=Instructions(
                home=ground.home,
                clock=ground.clock,
                folder=ground.folder,
                text=settings.instructions,
                file=ground.home / settings.instructions_file if settings.instructions_file else None,
                secrets=ground.secrets,
            ),
            settings=choice.settings,
            read=ground.read,
            clock=ground.clock,
            max_steps=settings.max_steps,
            prices=self._prices(settings),
        )

    def _prices(self, settings: AgentSettings) -> "Prices":
        from holdfast.agents.prices import Prices, find

        return Prices(settings.prices, window=settings.window, find=find)
