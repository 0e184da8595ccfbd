"""Background processes as the store has them. That they run is the business of `ports.keepers`."""

from typing import Protocol

from holdfast.core.events import ProcessEnded, ProcessStarted
from holdfast.core.processes import Matches, Process, Telling
from holdfast.core.redaction import Secrets
from holdfast.ports.keepers import Chunk, End, Keepers, Look, Name


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


async def printed(
    keepers: Keepers,
    process: Process,
    found: Look,
    secrets: Secrets,
    *,
    at: int,
    limit: int,
    from_line: bool = False,
    to_line: bool = False,
) -> Chunk:
    """Output from the byte `at` on, about `limit` bytes, moved so that it splits no secret: half of one would not be known any more. While
    the process runs, an end that may be the beginning of a secret is left for the next time. `from_line`, `to_line`: it begins with a
    line, and ends with one if more follows, where it has lines.
    """
    chunk = await read_on(keepers, process, found, start=max(0, at - secrets.reach), at=at, size=limit + 2 * secrets.reach)
    # What stood before the beginning may be gone, and with it the first half of a secret.
    begin = max(at - chunk.offset, secrets.reach if chunk.offset else 0)
    end = begin + limit
    if from_line and at:
        begin = chunk.data.find(b"\n", begin, end) + 1 or begin
    if to_line and chunk.offset + end < found.out:
        end = chunk.data.rfind(b"\n", begin, end) + 1 or end
    begin, end = secrets.window(chunk.data, begin, end, over=not found.runs)
    return Chunk(chunk.offset + begin, chunk.data[begin:end])


async def read_on(keepers: Keepers, process: Process, found: Look, *, start: int, at: int, size: int) -> Chunk:
    """Output as it is, from `start` on, over its files. Where files in between are gone it is in one piece, the one with `at`."""
    chunk = await keepers.read(name_of(process), offset=start, limit=size)
    while len(chunk.data) < size and chunk.next < found.out:
        more = await keepers.read(name_of(process), offset=chunk.next, limit=size - len(chunk.data))
        if not more.data or more.offset > chunk.next > at:
            break
        chunk = more if more.offset > chunk.next else Chunk(chunk.offset, chunk.data + more.data)
    return chunk


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
        """Records watched lines as a cause in the inbox of the process's session. False where nobody is to be told: the process is consumed
        or has ended, its session is left, suspended or deleted, or the lines are on record; and where the moment in which they were seen is
        over, which is recorded, so that they are not found again. Raises `NotFound`.
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
