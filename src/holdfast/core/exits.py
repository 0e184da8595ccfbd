"""How our process ends and what that tells its supervisor: one table of exit codes, persisted states, and signals."""

from enum import StrEnum

import msgspec

from holdfast.core import shutdowns
from holdfast.core.errors import Held, HoldfastError, Refused
from holdfast.core.lifecycle import GatewayState
from holdfast.core.shutdowns import Shutdown

# HELD: another process has something that only one can have; trying again helps once it is free. AGAIN: start me again. CONFIG: a person
# must change something first, so trying again does not help.
DONE, FAILED, USAGE, HELD, AGAIN, CONFIG = 0, 1, 2, 69, 75, 78


class End(StrEnum):
    """Why a process stops serving. RETIRED: a successor took over. BROKEN: a part of it failed."""

    STOP = "stop"
    RESTART = "restart"
    BROKEN = "broken"
    RETIRED = "retired"


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What is known so far about why a process ends. `shutdown`: every request to stop, joined. `other`, `because`: a restart by exit, or a
    part that failed. `signalled`: a signal has come that nobody has looked at yet. `succeeded`: another process serves instead.
    `awaited`: a terminal or a script waits for this process, and so for its successors.
    """

    shutdown: Shutdown | None = None
    other: End | None = None
    because: str | None = None
    signalled: bool = False
    succeeded: bool = False
    awaited: bool = False

    @property
    def end(self) -> End:
        """An operator's stop wins over every other reason (C28). What waits for this process waits for the stop of all processes."""
        if self.succeeded and (self.shutdown is None or not self.awaited):
            return End.RETIRED
        if self.shutdown is not None and self.shutdown.planned:
            return End.STOP
        return self.other or End.STOP

    @property
    def announced(self) -> bool:
        """Whether an authorised person asked for it. A signal counts as nobody's request until it has been examined."""
        if self.shutdown is not None:
            return self.shutdown.planned
        return not self.signalled and self.other is not End.BROKEN

    @property
    def for_good(self) -> bool:
        """Whether it is to stay stopped: an operator's stop, with which everything ends that runs in the background (C15)."""
        return self.end is End.STOP and self.announced and self.shutdown is not None

    @property
    def why(self) -> str | None:
        return self.because if self.shutdown is None else self.shutdown.why

    @property
    def code(self) -> int:
        return code(self.end, announced=self.announced)

    def asked(self, shutdown: Shutdown) -> "Ending":
        return msgspec.structs.replace(self, shutdown=shutdowns.joined(self.shutdown, shutdown))


def code(end: End, *, announced: bool) -> int:
    """The exit code. `announced`: an authorised person asked for the stop; a signal alone does not count (C26)."""
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
    """The exit code of a failed start. Trying again is useless only if an operator must change something."""
    if isinstance(error, Held):
        return HELD
    return CONFIG if isinstance(error, Refused) else FAILED


def left_behind(state: GatewayState, *, announced: bool) -> GatewayState:
    """The state to persist. An unannounced end leaves `running`, so that a start-up script brings it back (C17)."""
    return GatewayState.RUNNING if state is GatewayState.STOPPED and not announced else state


class Signal(StrEnum):
    """TERM: a stop, from anywhere. INT: Ctrl-C, if a terminal sends it. HUP: a hand-over under a supervisor; elsewhere the terminal was
    closed. ANNOUNCED: the stop of `holdfast stop`, where no marker announces it: it cannot be written, or names another process.
    """

    TERM = "SIGTERM"
    INT = "SIGINT"
    HUP = "SIGHUP"
    ANNOUNCED = "SIGUSR1"


def announces(signal: Signal, *, marked: bool, at_terminal: bool) -> bool:
    """Whether a stop signal counts as somebody's request. `marked`: a marker names this process. `at_terminal`: it is in the foreground of
    a terminal, so a person has pressed Ctrl-C.
    """
    return marked or signal is Signal.ANNOUNCED or (signal is Signal.INT and at_terminal)
