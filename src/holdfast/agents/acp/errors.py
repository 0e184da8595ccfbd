"""How an agent that is another program can fail its turn."""

from collections.abc import Sequence

from holdfast.core.errors import HoldfastError
from holdfast.ports.keepers import End


class AgentFailed(HoldfastError):
    """It reported an error, or sent something unusable."""

    code = "agent_failed"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name} failed: {why.rstrip('.')}.")


class NotSignedIn(AgentFailed):
    code = "agent_not_signed_in"

    def __init__(self, name: str, ways: Sequence[str]) -> None:
        super().__init__(name, f"it is not signed in. {' or '.join(ways) or 'Sign in with the program itself'}")


class AgentGone(HoldfastError):
    """Its process ended before it answered. `said`: the end of its standard error."""

    code = "agent_gone"

    def __init__(self, name: str, end: End | None, said: str = "") -> None:
        self.name, self.how = name, told(end)
        super().__init__(f"The process of {name} ended before it answered ({self.how})." + (f" It last printed: {said}" if said else ""))


def told(end: End | None) -> str:
    """How it ended, for people."""
    if end is None or end.lost is not None:
        return "how is not known"
    if end.problem is not None:
        return end.problem
    return f"exit code {end.code}" if end.code is not None else f"signal {end.signal}"
