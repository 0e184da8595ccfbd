"""A model tried with one real request, and what its provider offers: for those who set one up, and for those who look for what is wrong.

The command line loads this module and no other of the agents: it makes no turn, knows no log, and needs no gateway.
"""

import asyncio
import io
import subprocess
import sys
import wave
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from holdfast.agents.choice import Choice
from holdfast.agents.wires import providers
from holdfast.agents.wires.providers import PROVIDERS
from holdfast.config import Agent, BadConfig
from holdfast.core.history import User
from holdfast.ports.agents import Response
from holdfast.ports.models import Cut, ModelClient, ModelRequest
from holdfast.ports.tools import ToolSpec

__all__ = [
    "PROVIDERS",
    "answers",
    "check",
    "check_transcriber",
    "hears",
    "introduces_itself",
    "key_variable",
    "loads",
    "offered",
    "price_known",
    "provider_of",
    "window",
]

# How long a module may take to load.
LOADING_S = 60.0
RATE = 16_000

# With a tool, because Holdfast's agent always has some, and not every model takes them.
ASK = ToolSpec(
    name="ask_user",
    description="Asks the person a question and gives the answer.",
    schema={"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
)
WORDS = "This is a test of the connection. Answer with the single word: ready."
T = TypeVar("T")


def provider_of(name: str) -> str:
    """Of `PROVIDER:NAME`."""
    return providers.choice(name).provider


def key_variable(provider: str) -> str | None:
    """The variable in which this provider's key is looked for; None if it needs none, or if Holdfast does not know."""
    known = PROVIDERS.get(provider)
    return known.key_variable if known is not None else None


def price_known(agent: Agent, name: str) -> bool:
    from holdfast.agents import prices

    return asyncio.run(prices.Prices(agent.prices, find=prices.find).known(name))


def window(agent: Agent, name: str) -> int | None:
    """The window that is only assumed of this model, because nobody says what its server was started with."""
    from holdfast.agents import prices

    known = prices.Prices(agent.prices, window=agent.window).set_window(name) is not None
    return None if known or provider_of(name) not in prices.UNKNOWN_SERVERS else prices.default_window(name)


def loads(module: str, folder: Path) -> None:
    """Loads an agent of one's own in a process of its own: what it does on the way concerns nobody else. Raises `BadConfig`."""
    words = [sys.executable, "-P", "-m", "holdfast.agents.own", module, str(folder)]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", timeout=LOADING_S)
    except subprocess.TimeoutExpired:
        raise BadConfig(f"The agent {module!r} does not finish loading: it took more than {LOADING_S:g} s.") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise BadConfig(said[-1] if said else f"The agent {module!r} cannot be loaded: its process ended with {done.returncode}.")


def introduces_itself(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Starts an agent that is another program, and returns what it says about itself, for people. Raises `Refused`."""
    from holdfast.agents.acp import trial, variables

    can = trial.introduces_itself(words, variables(environment))
    after = "resumes" if can.resumes else "loads" if can.loads else "cannot continue"
    return f"{can.name} answers; after its own end it {after} its sessions"


def check_transcriber(agent: Agent, *, key: str | None, environment: Mapping[str, str]) -> None:
    """Asks nobody. Raises `BadConfig` if the configured transcriber cannot be asked with these settings."""
    Choice(msgspec.structs.replace(agent, fallbacks=(), models=(), title_model=""), key=key, environment=environment)


def hears(agent: Agent, *, key: str | None, environment: Mapping[str, str]) -> None:
    """Has the configured transcriber hear a second of silence. Raises as `answers` does."""
    transcriber = Choice(
        msgspec.structs.replace(agent, fallbacks=(), models=(), title_model=""), key=key, environment=environment
    ).transcriber
    if transcriber is not None:
        asyncio.run(transcriber.words(_silence(), name="silence.wav", media_type="audio/wav"))


def _silence() -> bytes:
    with io.BytesIO() as file:
        with wave.open(file, "wb") as recording:
            recording.setnchannels(1)
            recording.setsampwidth(2)
            recording.setframerate(RATE)
            recording.writeframes(bytes(2 * RATE))
        return file.getvalue()


def check(agent: Agent, name: str, *, key: str | None, environment: Mapping[str, str]) -> None:
    """Asks nobody. Raises `BadConfig` if this model cannot be asked with these settings."""
    _alone(agent, key, environment).client(name)


def answers(agent: Agent, name: str, *, key: str | None, environment: Mapping[str, str]) -> None:
    """Asks this model, as a turn would. Raises a `ModelError` if it gives no whole response, `BadConfig` if it cannot be asked at all."""
    choice = _alone(agent, key, environment)
    request = ModelRequest(
        system="You are tried out.",
        history=(User(id="trial", content=WORDS),),
        tools=(ASK,),
        settings=choice.settings(name),
        read=_no_file,
    )

    async def ask(client: ModelClient) -> None:
        pieces, whole = client.stream(request), False
        try:
            async for piece in pieces:
                whole = isinstance(piece, Response)
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
        if not whole:
            raise Cut(f"{name} sent no response.")

    _run(choice.client(name), ask)


def offered(agent: Agent, name: str, *, key: str | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of models at the provider of this one; none if it has no list. Raises as `answers` does."""

    async def ask(client: ModelClient) -> tuple[str, ...]:
        from holdfast.agents.wires.client import Client

        return await client.offered() if isinstance(client, Client) else ()

    return _run(_alone(agent, key, environment).client(name), ask)


def _alone(agent: Agent, key: str | None, environment: Mapping[str, str]) -> Choice:
    """Without its other models, which are not what is asked about."""
    return Choice(msgspec.structs.replace(agent, fallbacks=(), models=(), title_model="", transcriber=""), key=key, environment=environment)


def _run(client: ModelClient, ask: Callable[[ModelClient], Awaitable[T]]) -> T:
    async def asked() -> T:
        try:
            return await ask(client)
        finally:
            await client.aclose()

    return asyncio.run(asked())


async def _no_file(digest: str) -> bytes:
    raise LookupError(digest)
