"""The agent that answers with a model, as tests of the gateway have it: its models are in this process."""

from collections.abc import Callable
from pathlib import Path

from holdfast.agents.instructions import Instructions
from holdfast.agents.model import MAX_STEPS, ModelAgent
from holdfast.agents.prices import Prices
from holdfast.ports.models import ModelSettings
from tests.fakes.models_scripted import ScriptedModels
from tests.gateway.gateways import Life

FIRST, SECOND = "a:first", "b:second"


def agent_of(
    models: ScriptedModels, folder: Path, *names: str, prices: Prices | None = None, max_steps: int = MAX_STEPS
) -> Callable[[Life], ModelAgent]:
    def make(life: Life) -> ModelAgent:
        return ModelAgent(
            models=lambda chosen: names or ((SECOND, FIRST) if chosen == SECOND else (FIRST, SECOND)),
            client=models.client,
            instructions=Instructions(home=folder, clock=life.clock, folder=lambda session_id, chosen: folder, text="Be kind."),
            settings=lambda model: ModelSettings(),
            read=_no_blob,
            clock=life.clock,
            prices=prices,
            max_steps=max_steps,
            chance=lambda: 1.0,
        )

    return make


async def _no_blob(digest: str) -> bytes:
    raise AssertionError(f"nobody reads {digest}")
