"""Background processes: what is known of one, whether and how its end is told, and which lines of its output are told when.

A process is nobody's message. Its end is told once, wherever the conversation has gone since; what it prints is told only while the
conversation has not gone on without it (E2, E3, E6).
"""

from collections.abc import Sequence
from enum import Enum, auto

import msgspec

from holdfast.core.errors import Refused
from holdfast.core.events import ProcessEnded, ProcessStarted
from holdfast.core.notices import span
from holdfast.core.redaction import NO_SECRETS, Secrets

# What a turn says that it started from.
ENDED, MATCHED = "process", "watch"
KILLED, WAITED, READ, DELETED = "killed", "waited", "read", "deleted"
NEVER_RAN, MACHINE, UNREADABLE = "never_ran", "machine", "unreadable"
# Of the output at the end of a process, and of the lines that are watched for.
TAIL_CHARS, LINES_QUOTED, LINE_CHARS = 2000, 10, 300
LINE_BYTES = 4 * LINE_CHARS
NAME_CHARS = 60
# The first match is told at once, the next after so long; while they do not cease, after twice as long each time.
MATCH_EVERY_MS, DOUBLINGS = 10_000, 6


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One background process. `started_at` to `patterns`: as its start was recorded. `consumed`: how, if nothing of it is told any more.
    `scanned`: up to which byte its output was read for lines to tell; `matched_at`, `streak`: when some were told last, and how often in
    close succession. `end`: None while it runs.
    """

    process_id: str
    session_id: str
    command: str
    started_at: int
    turn_id: str
    owner: int
    generation: int
    sender: str
    anchor: str | None
    notify: bool
    patterns: tuple[str, ...]
    consumed: str | None = None
    scanned: int = 0
    matched_at: int = 0
    streak: int = 0
    end: ProcessEnded | None = None

    @property
    def name(self) -> str:
        return short(self.command)

    @property
    def doomed(self) -> bool:
        """It is to be dead."""
        return self.consumed in (KILLED, DELETED)


def started(event: ProcessStarted, *, session_id: str, at: int) -> Process:
    """As its start was recorded."""
    return Process(
        process_id=event.process_id,
        session_id=session_id,
        command=event.command,
        started_at=at,
        turn_id=event.turn_id,
        owner=event.owner,
        generation=event.generation,
        sender=event.sender,
        anchor=event.anchor,
        notify=event.notify,
        patterns=event.patterns,
    )


class TooManyProcesses(Refused):
    code = "too_many_processes"

    def __init__(self, running: int) -> None:
        super().__init__(f"{running} background processes are running already, and no more are allowed. Wait for one to end, or kill one.")


def short(command: str) -> str:
    """A command in a sentence."""
    line = " ".join(command.split())
    return line if len(line) <= NAME_CHARS else line[: NAME_CHARS - 1] + "…"


# its end


class Telling(Enum):
    """How the end of a process is told: as a turn of its own, as a message of the gateway, or not at all."""

    TURN = auto()
    NOTICE = auto()
    NOTHING = auto()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What decides. `notify`: somebody wants to know. `lost`: nobody saw how it ended. `stopped`: an operator's stop ends it.
    `ended_by_person`: somebody ended this one. `current`: its session is still its key's current one, and neither suspended nor left for a
    person to continue. `fresh`: it ended recently enough to start work without asking (R6).
    """

    consumed: bool
    deleted: bool
    notify: bool
    lost: bool
    stopped: bool
    ended_by_person: bool
    current: bool
    fresh: bool


def telling(facts: Facts) -> Telling:
    """A process that was lost, or that a person ended, is told even where nobody asked to be told: the agent believes that it runs."""
    if facts.consumed or facts.deleted:
        return Telling.NOTHING
    if not facts.notify:
        return Telling.NOTICE if facts.lost or facts.ended_by_person else Telling.NOTHING
    return Telling.TURN if facts.current and facts.fresh and not facts.stopped else Telling.NOTICE


def ended(process: Process, end: ProcessEnded, *, tail: str = "", matched: str = "") -> str:
    """The end of a process, for people and agents. `tail`: of its output; `matched`: lines that were watched for and not told yet."""
    told = f"The background process `{process.name}` ({process.process_id}) {how_it_ended(process, end)}."
    told += f"\n\n{matched}" if matched else ""
    last = tail[-TAIL_CHARS:].strip("\r\n")
    return f"{told}\n\nThe end of its output:\n\n{last}" if last.strip() else told


def how_it_ended(process: Process, end: ProcessEnded) -> str:
    after = f" after {span(end.ended_at - process.started_at)}"
    if end.stopped:
        return "was ended, because Holdfast was stopped"
    if end.by is not None:
        return f"was ended by a person{after}"
    if end.lost == NEVER_RAN:
        return "was not started, because Holdfast was interrupted first"
    if end.lost == MACHINE:
        return f"was lost{after}, because the machine it ran on was started again. Its exit code is not known"
    if end.lost == UNREADABLE:
        return f"was lost{after}, because the files that say how it ended are damaged. Its exit code is not known"
    if end.lost is not None:
        return f"was lost{after}, because the program that watched over it was killed. Its exit code is not known"
    if end.problem is not None:
        return f"could not be started: {end.problem}"
    if end.signal is not None:
        return f"was ended by signal {end.signal}{after}"
    return f"ended{after}" + (f" with exit code {end.code}" if end.code is not None else ", it is not known how")


# what it prints


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """How a session stood when lines were seen. `generation`: of its newest turn; `during`: that was open. `away`: the conversation is
    elsewhere, or waits for a person, so that lines are nobody's.
    """

    generation: int
    during: bool = False
    away: bool = False


class Matches(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that are watched for. `quoted`: the newest of them. `through`: up to which byte the output was read. `seen`: when these lines
    were; they belong to that moment alone (E3).
    """

    lines: int = 0
    quoted: tuple[str, ...] = ()
    through: int = 0
    seen: Moment | None = None

    def __add__(self, more: "Matches") -> "Matches":
        quoted = (*self.quoted, *more.quoted)[-LINES_QUOTED:]
        return Matches(lines=self.lines + more.lines, quoted=quoted, through=max(self.through, more.through), seen=self.seen)


def scan(data: bytes, *, offset: int, patterns: Sequence[str], over: bool, secrets: Secrets = NO_SECRETS) -> Matches:
    """The lines of a piece of output, which begins at `offset`, that hold one of the patterns, without secrets. The end of it, where it is
    no whole line, is read again next time, unless nothing follows (`over`), or it matches already and ends in nothing that may be the
    beginning of a secret.
    """
    found: list[str] = []
    lines = data.splitlines(keepends=True)
    read = 0
    for line in lines:
        text = line.decode("utf-8", "replace").strip()
        matches = any(pattern in text for pattern in patterns)
        unfinished = not over and not line.endswith((b"\n", b"\r"))
        if unfinished and (not matches or secrets.window(line, 0, len(line), over=False)[1] < len(line)):
            break
        read += len(line)
        if matches:
            clean = secrets.text(text)
            found.append(clean if len(clean) <= LINE_CHARS else clean[:LINE_CHARS] + "…")
    return Matches(lines=len(found), quoted=tuple(found[-LINES_QUOTED:]), through=offset + read)


def scan_part(data: bytes, *, offset: int, patterns: Sequence[str], secrets: Secrets = NO_SECRETS) -> Matches:
    """A part of a line that is too long to be read at once, from `offset` on; it counts as a line. The end of the part, where a pattern or
    a secret may begin that is not all there, is read again with what follows: whatever begins before it is found here, and only here.
    """
    forms = [pattern.encode() for pattern in patterns]
    _, end = secrets.window(data, 0, len(data) - max(len(form) for form in forms) + 1, over=False)
    places = [place for form in forms if 0 <= (place := data.find(form)) < end]
    if not places:
        return Matches(through=offset + end)
    begin, last = secrets.window(data, max(0, min(places) - LINE_CHARS // 2), min(places) + LINE_BYTES, over=False)
    text = secrets.text(data[begin:last].decode("utf-8", "replace")).strip()[:LINE_CHARS]
    return Matches(lines=1, quoted=(f"{'…' if begin else ''}{text}…",), through=offset + end)


def held(before: Matches, more: Matches, *, here: Moment) -> Matches:
    """What is held back to be told, after `more` was seen in this moment. Lines of an earlier moment are nobody's by then."""
    if not more.lines:
        return msgspec.structs.replace(before, through=more.through)
    fresh = msgspec.structs.replace(more, seen=here)
    return before + fresh if before.lines and before.seen == here else fresh


def recordable(process: Process, matches: Matches, *, here: Moment, now: int) -> bool:
    """Whether lines that are held back are to be put on record now: as soon as their moment is over, or when they may be told."""
    return matches.seen != here or (not here.away and match_due(process, now))


def match_due(process: Process, now: int) -> bool:
    """Whether lines may be told now. A clock that was set back is no reason to wait."""
    return not 0 <= now - process.matched_at < _every(process.streak)


def streak(process: Process, now: int) -> int:
    """Of the lines that are told now. They are in close succession if they come before twice the time that they had to wait for."""
    if now - process.matched_at >= 2 * _every(process.streak):
        return 0
    return min(process.streak + 1, DOUBLINGS)


def _every(streak: int) -> int:
    return int(MATCH_EVERY_MS * 2**streak)


def matched(process: Process, matches: Matches) -> str:
    """The lines, for people and agents."""
    return f"The background process `{process.name}` ({process.process_id}) printed {listed(matches)}"


def listed(matches: Matches) -> str:
    which = "a line that is watched for" if matches.lines == 1 else f"{matches.lines} lines that are watched for"
    more = f", of which these are the last {len(matches.quoted)}" if matches.lines > len(matches.quoted) else ""
    return f"{which}{more}:\n\n" + "\n".join(matches.quoted)


# all that run


def running(processes: Sequence[Process], *, now: int) -> str:
    """What runs in a conversation, for people; nothing if nothing does."""
    lines = [f"- {process.name} ({process.process_id}), for {span(now - process.started_at)}" for process in processes if not process.end]
    if not lines:
        return ""
    return f"{len(lines)} background {'process is' if len(lines) == 1 else 'processes are'} running:\n" + "\n".join(lines)
