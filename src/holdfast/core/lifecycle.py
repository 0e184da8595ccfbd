"""The life of one serving process: one table keyed (state, input). A pair is listed, listed as harmless, or a bug that raises."""

from enum import StrEnum

from holdfast.core.errors import Bug


class GatewayState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    STOPPING = "stopping"
    STOPPED = "stopped"
    STARTUP_FAILED = "startup_failed"


class Input(StrEnum):
    """READY: the store is open and recovery is under way. EMPTY: nothing runs any more. DEADLINE: the drain's time is up."""

    READY = "ready"
    FAILED = "failed"
    STOP = "stop"
    EMPTY = "empty"
    DEADLINE = "deadline"
    CLOSED = "closed"


G, I = GatewayState, Input  # noqa: E741
TABLE: dict[tuple[GatewayState, Input], GatewayState] = {
    (G.STARTING, I.READY): G.RUNNING,
    (G.STARTING, I.FAILED): G.STARTUP_FAILED,
    (G.STARTING, I.STOP): G.STOPPING,
    (G.RUNNING, I.STOP): G.DRAINING,
    (G.DRAINING, I.EMPTY): G.STOPPING,
    (G.DRAINING, I.DEADLINE): G.STOPPING,
    (G.STOPPING, I.CLOSED): G.STOPPED,
}
# A second signal, or news that comes late: nothing changes.
HARMLESS = {
    (G.DRAINING, I.STOP),
    (G.STOPPING, I.STOP),
    (G.STOPPING, I.EMPTY),
    (G.STOPPING, I.DEADLINE),
    (G.STOPPED, I.STOP),
    (G.STOPPED, I.CLOSED),
    (G.STARTUP_FAILED, I.STOP),
    (G.STARTUP_FAILED, I.CLOSED),
}


def after(state: GatewayState, happened: Input) -> GatewayState:
    if (state, happened) in HARMLESS:
        return state
    try:
        return TABLE[state, happened]
    except KeyError:
        raise Bug(f"A gateway that is {state} cannot see {happened!r}.") from None


def takes_turns(state: GatewayState) -> bool:
    """Whether a new turn may start, or a cut one be resumed."""
    return state is GatewayState.RUNNING
