"""Processes in the background."""

from holdfast.core.events.base import Event


class ProcessStarted(Event, frozen=True):
    """A background process is about to be started: on record before anything of it runs. `turn_id`, `call_id`: by which call of which
    turn, which was of this `generation`; `owner`: in which process of ours. What comes of it has the rights of `sender`, who asked for
    that turn, and is told at `anchor`. `notify`: its end is told. `patterns`: lines of its output that hold one of these are told.
    """

    kind = "process.started"
    process_id: str
    command: str
    turn_id: str
    call_id: str
    owner: int
    generation: int = 0
    sender: str = "owner"
    anchor: str | None = None
    notify: bool = True
    patterns: tuple[str, ...] = ()


class ProcessMatched(Event, frozen=True):
    """Lines of its output that are watched for came, so many since the last time, and are told; none are told (0) where those that came
    belong to a moment that is over. `through`: up to which byte it was read. `streak`: how often lines were told in close succession; the
    next ones are told later and later.
    """

    kind = "process.matched"
    process_id: str
    lines: int
    through: int
    streak: int = 0


class ProcessConsumed(Event, frozen=True):
    """Nothing of it is told from here on: it was (or is about to be) killed, or its end is known where it was started. `how`: "killed",
    "waited", "read", "deleted" (with its conversation).
    """

    kind = "process.consumed"
    process_id: str
    how: str


class ProcessEnded(Event, frozen=True):
    """How it ended (as `ports.keepers.End`), and when. `stopped`: an operator's stop of Holdfast ends it. `by`: the person who ends it."""

    kind = "process.ended"
    process_id: str
    ended_at: int
    code: int | None = None
    signal: int | None = None
    problem: str | None = None
    lost: str | None = None
    stopped: bool = False
    by: str | None = None
