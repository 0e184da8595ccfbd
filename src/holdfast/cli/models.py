"""Models, as far as the command line knows them: one is tried, and what is said of it if it does not answer.

The only module of the command line that knows the agents, and of those only `agents.trial`.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from holdfast.agents import trial
from holdfast.agents.trial import (
    PROVIDERS,
    check,
    check_transcriber,
    introduces_itself,
    key_variable,
    loads,
    price_known,
    provider_of,
    window,
)
from holdfast.config import Agent
from holdfast.core.errors import Refused
from holdfast.ports.models import Busy, ModelError, NotAllowed, Rejected, TooLong

__all__ = [
    "PROVIDERS",
    "NoAnswer",
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

SHOWN = 5
HERE = ("127.0.0.1", "localhost", "::1")


class NoAnswer(Refused):
    """A model that was tried: why it did not answer, and what to do. `wrong_key`: because of the key."""

    code = "no_answer"

    def __init__(self, error: ModelError, *, local: bool = False, there: Sequence[str] = ()) -> None:
        self.wrong_key = isinstance(error, NotAllowed) and error.lacks == "key"
        words = str(error).rstrip()
        super().__init__(f"{words}{'' if words.endswith(('.', '!', '?')) else '.'} {_advice(error, local, there)}")


def answers(agent: Agent, name: str, *, key: str | None, environment: Mapping[str, str]) -> None:
    """One real request. Raises `NoAnswer` or `BadConfig`."""
    try:
        trial.answers(agent, name, key=key, environment=environment)
    except ModelError as error:
        there: Sequence[str] = ()
        if isinstance(error, NotAllowed) and error.lacks == "model":
            there = _nearest(name.partition(":")[2], offered(agent, name, key=key, environment=environment))
        raise NoAnswer(error, local=_is_local(agent, name), there=there) from error


def hears(agent: Agent, *, key: str | None, environment: Mapping[str, str]) -> None:
    """One real request to the transcriber. Raises `NoAnswer` or `BadConfig`."""
    try:
        trial.hears(agent, key=key, environment=environment)
    except ModelError as error:
        raise NoAnswer(error, local=_is_local(agent, agent.transcriber)) from error


def offered(agent: Agent, name: str, *, key: str | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The models of this one's provider; none if it does not list them. Raises `NoAnswer` if nothing else can work either: the key is
    wrong, or there is no connection.
    """
    try:
        return trial.offered(agent, name, key=key, environment=environment)
    except ModelError as error:
        if (isinstance(error, NotAllowed) and error.lacks == "key") or (isinstance(error, Busy) and error.at_once):
            raise NoAnswer(error, local=_is_local(agent, name)) from error
        return ()


def _is_local(agent: Agent, name: str) -> bool:
    known = PROVIDERS.get(provider_of(name))
    address = (agent.base_url if provider_of(name) == provider_of(agent.model) else "") or (known.base_url if known else "")
    return urlsplit(address or "").hostname in HERE


def _advice(error: ModelError, local: bool, there: Sequence[str]) -> str:
    match error:
        case NotAllowed(lacks="key"):
            return "Check the key: is it whole, and a key of this provider?"
        case NotAllowed(lacks="credit"):
            return "Add credit to the account at the provider, or choose another provider."
        case NotAllowed(lacks="permission"):
            return "Allow this key to use the model, at the provider, or choose another model."
        case NotAllowed(lacks="model"):
            return f"Choose one that there is: {', '.join(there)}." if there else "Check the name of the model, and the address (base_url)."
        case NotAllowed():
            return "Check the address (base_url), the proxy and the key."
        case Rejected() | TooLong():
            return "Choose another model, or set base_url: this one does not take what Holdfast sends, which includes tools."
        case Busy(at_once=True) if local:
            return "Start that server, or set the address of another one (base_url)."
        case Busy(at_once=True):
            return "Check the network and the address (base_url)."
    return "Try again later, or choose another model."


def _nearest(wanted: str, names: Sequence[str]) -> list[str]:
    from difflib import get_close_matches

    return list(dict.fromkeys((*get_close_matches(wanted, names, n=SHOWN, cutoff=0.3), *names)))[:SHOWN]
