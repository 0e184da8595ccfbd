"""The life of one serving process: one table keyed (state, input). A pair is listed, listed as harmless, or a bug that raises."""

from enum import StrEnum

from holdfast.core.errors import Bug


class GatewayState(StrEnum):
    """PAUSED: messages are kept, no turn starts. HANDING_OVER: a successor is being started. GIVING_WAY: the successor is ready and takes
    over; this process starts nothing more. RETIRING: the successor serves, and the turns that run here finish.
    """

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    HANDING_OVER = "handing_over"
    GIVING_WAY = "giving_way"
    RETIRING = "retiring"
    DRAINING = "draining"
    STOPPING = "stopping"
    STOPPED = "stopped"
    STARTUP_FAILED = "startup_failed"


class Input(StrEnum):
    """READY: the store is open and recovery is under way. HAND_OVER: somebody asked for a restart. GIVE_WAY: the successor is ready.
    TAKEN_OVER, NOT_TAKEN: the outcome. EMPTY: no turn runs any more. DEADLINE: the drain's time is up.
    """

    READY = "ready"
    FAILED = "failed"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    HAND_OVER = "hand_over"
    GIVE_WAY = "give_way"
    TAKEN_OVER = "taken_over"
    NOT_TAKEN = "not_taken"
    STOP = "stop"
    EMPTY = "empty"
    DEADLINE = "deadline"
    CLOSED = "closed"


G, I = GatewayState, Input  # noqa: E741
TABLE: dict[tuple[GatewayState, Input], GatewayState] = {
    (G.STARTING, I.READY): G.RUNNING,
    (G.STARTING, I.FAILED): G.STARTUP_FAILED,
    (G.STARTING, I.STOP): G.STOPPING,
    (G.RUNNING, I.PAUSE): G.PAUSED,
    (G.RUNNING, I.HAND_OVER): G.HANDING_OVER,
    (G.RUNNING, I.STOP): G.DRAINING,
    (G.PAUSED, I.UNPAUSE): G.RUNNING,
    (G.PAUSED, I.HAND_OVER): G.HANDING_OVER,
    (G.PAUSED, I.STOP): G.DRAINING,
    (G.HANDING_OVER, I.GIVE_WAY): G.GIVING_WAY,
    (G.HANDING_OVER, I.NOT_TAKEN): G.RUNNING,
    (G.HANDING_OVER, I.STOP): G.DRAINING,
    (G.GIVING_WAY, I.TAKEN_OVER): G.RETIRING,
    (G.GIVING_WAY, I.NOT_TAKEN): G.RUNNING,
    (G.GIVING_WAY, I.STOP): G.DRAINING,
    (G.RETIRING, I.EMPTY): G.STOPPING,
    (G.RETIRING, I.STOP): G.DRAINING,
    (G.DRAINING, I.EMPTY): G.STOPPING,
    (G.DRAINING, I.DEADLINE): G.STOPPING,
    (G.STOPPING, I.CLOSED): G.STOPPED,
}
# A second request for what is already under way, or late news: nothing changes.
HARMLESS = {
    (G.PAUSED, I.PAUSE),
    (G.RUNNING, I.UNPAUSE),
    (G.DRAINING, I.UNPAUSE),
    (G.STOPPING, I.UNPAUSE),
    (G.STOPPED, I.UNPAUSE),
    (G.HANDING_OVER, I.UNPAUSE),
    (G.GIVING_WAY, I.UNPAUSE),
    (G.DRAINING, I.GIVE_WAY),
    (G.STOPPING, I.GIVE_WAY),
    (G.RETIRING, I.UNPAUSE),
    (G.DRAINING, I.TAKEN_OVER),
    (G.DRAINING, I.NOT_TAKEN),
    (G.STOPPING, I.NOT_TAKEN),
    (G.STOPPED, I.NOT_TAKEN),
    (G.DRAINING, I.STOP),
    (G.STOPPING, I.STOP),
    (G.STOPPING, I.EMPTY),
    (G.STOPPING, I.DEADLINE),
    (G.STOPPED, I.STOP),
    (G.STOPPED, I.CLOSED),
    (G.STARTUP_FAILED, I.STOP),
    (G.STARTUP_FAILED, I.CLOSED),
}


# An event loop that has not responded for this long hangs; its watchdog and `holdfast status` use the same number.
HUNG_AFTER_S = 10.0


def after(state: GatewayState, happened: Input) -> GatewayState:
    if (state, happened) in HARMLESS:
        return state
    try:
        return TABLE[state, happened]
    except KeyError:
        raise Bug(f"A gateway that is {state} cannot see {happened!r}.") from None


def may(state: GatewayState, happened: Input) -> bool:
    """Whether a request is possible now; otherwise it is refused."""
    return (state, happened) in TABLE or (state, happened) in HARMLESS


def restarts(state: GatewayState) -> bool:
    """Whether it may be asked to restart. A request during a hand-over joins it."""
    return state in (GatewayState.HANDING_OVER, GatewayState.GIVING_WAY) or may(state, Input.HAND_OVER)


class Work(StrEnum):
    """What may begin in a state. ALL: turns start and resume. DECISIONS: none does; stops and ends are carried out, and what was
    interrupted is recorded and decided (A26). NOTHING: nothing begins; what runs continues.
    """

    ALL = "all"
    DECISIONS = "decisions"
    NOTHING = "nothing"


_WORK = {G.RUNNING: Work.ALL, G.PAUSED: Work.DECISIONS, G.HANDING_OVER: Work.ALL, G.DRAINING: Work.DECISIONS}


def work(state: GatewayState, *, paused: bool) -> Work:
    """What may begin now: the one place that says whether a turn may start. A pause outlasts the start of a successor."""
    if state is G.HANDING_OVER and paused:
        return Work.DECISIONS
    return _WORK.get(state, Work.NOTHING)


def comes_back(state: str | None) -> bool:
    """Whether a start-up script starts a gateway whose last persisted state was this (C17). After an operator's stop it does not."""
    return state not in (GatewayState.STOPPED, GatewayState.STARTUP_FAILED)
