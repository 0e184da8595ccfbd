"""How a process of ours ends and what that tells its supervisor: one table of exit codes, states left behind, and signals."""

from enum import StrEnum

from holdfast.core.errors import Held, HoldfastError, Refused
from holdfast.core.lifecycle import GatewayState

# HELD: something that must be there once is held by somebody else for now; trying again helps as soon as they let go. AGAIN: start me
# again. CONFIG: a human must change something first, so trying again does not help.
DONE, FAILED, USAGE, HELD, AGAIN, CONFIG = 0, 1, 2, 69, 75, 78


class End(StrEnum):
    """Why a process stops serving. RETIRED: a successor took over. BROKEN: a part of it failed."""

    STOP = "stop"
    RESTART = "restart"
    BROKEN = "broken"
    RETIRED = "retired"


def code(end: End, *, announced: bool) -> int:
    """The exit code. `announced`: somebody who may do so asked for the stop; a signal alone is nobody's word (C26)."""
    match end:
        case End.STOP:
            return DONE if announced else AGAIN
        case End.RESTART:
            return AGAIN
        case End.BROKEN:
            return FAILED
        case End.RETIRED:
            return DONE


def refused(error: HoldfastError) -> int:
    """The exit code of a start that failed. Only what its operator must change is worth no further try."""
    if isinstance(error, Held):
        return HELD
    return CONFIG if isinstance(error, Refused) else FAILED


def left_behind(state: GatewayState, *, announced: bool) -> GatewayState:
    """The state to persist. An end that nobody announced leaves `running`, so that a start-up script brings it back (C17)."""
    return GatewayState.RUNNING if state is GatewayState.STOPPED and not announced else state


class Signal(StrEnum):
    """TERM: a stop, by anybody. INT: Ctrl-C, where a terminal sends it. HUP: a hand-over under a supervisor; elsewhere the terminal was
    closed. ANNOUNCED: the stop of `holdfast stop`, where no marker announces it: it cannot be written, or names another process.
    """

    TERM = "SIGTERM"
    INT = "SIGINT"
    HUP = "SIGHUP"
    ANNOUNCED = "SIGUSR1"


def announces(signal: Signal, *, marked: bool, at_terminal: bool) -> bool:
    """Whether a signal that stops is somebody's word. `marked`: a marker names this process. `at_terminal`: it is in the foreground of a
    terminal, so that a person has pressed Ctrl-C.
    """
    return marked or signal is Signal.ANNOUNCED or (signal is Signal.INT and at_terminal)
