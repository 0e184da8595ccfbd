"""Background processes as the store has them. That they run is the business of `ports.keepers`."""

from typing import Protocol

from holdfast.core.events import ProcessEnded, ProcessStarted
from holdfast.core.processes import Matches, Process, Telling
from holdfast.ports.keepers import End, Name


def name_of(process: Process) -> Name:
    """By which its keeper is known."""
    return Name(process.session_id, process.process_id)


def recorded(process: Process, end: End) -> ProcessEnded:
    """The end that a keeper tells, as it is recorded."""
    return ProcessEnded(
        process_id=process.process_id,
        ended_at=end.at,
        code=end.code,
        signal=end.signal,
        problem=end.problem,
        lost=None if end.lost is None else str(end.lost),
    )


class Processes(Protocol):
    """Every method keeps to the contract of `ports.store`."""

    async def start_process(self, session_id: str, wanted: ProcessStarted, *, most: int, at: int) -> Process:
        """Records that a process is about to be started by the turn that runs in this session; after this its keeper may be. Sender,
        anchor and generation are those of the turn. Repeating a process id changes nothing and gives the process. Raises `StaleEpoch` for a
        turn that its owner does not run any more or is to stop, `TooManyProcesses` where `most` run already in this home, `NotFound`.
        """

    async def end_process(self, ended: ProcessEnded, *, tail: str, matches: Matches, window_s: float, at: int) -> Telling:
        """Records how a process ended, and in the same transaction what is told of it (`core.processes`): a cause in the inbox of its
        session, a notice where its key's conversation is now, or nothing. The end is recorded once: repeating it changes nothing.
        `tail`: the end of its output; `matches`: watched lines that are not told yet; `window_s`: how long an end is fresh (R6). Raises
        `NotFound`.
        """

    async def match_process(self, process_id: str, matches: Matches, *, at: int) -> bool:
        """Records watched lines as a cause in the inbox of the process's session. False, and nothing written, where nobody is to be told:
        the process is consumed or has ended, its session is left, suspended or deleted, or the lines are on record. Raises `NotFound`.
        """

    async def consume_process(self, process_id: str, *, how: str, at: int) -> bool:
        """Nothing of this process is told from now on; causes of it that wait are dropped. Repeating it changes nothing. The same happens
        where a turn records `process.consumed` itself. Raises `NotFound`.
        """

    async def process(self, process_id: str) -> Process:
        """Raises `NotFound`."""

    async def processes(self, session_id: str) -> list[Process]:
        """Those of a session, in the order of their starts."""

    async def running_processes(self) -> list[Process]:
        """Those of all sessions whose end is not on record."""
