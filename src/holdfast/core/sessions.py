"""A session as it is now: its row in the catalog, as a value."""

import re

import msgspec

from holdfast.core import markdown
from holdfast.core.turns import OPEN, TurnState

TITLE_CHARS = 60
EXCERPT_CHARS = 120
# So much of a text is read for its first words.
READ_CHARS = 1000
# What stands for a bullet or a rule in a text that was read.
# One line without anything that Markdown could mean: of most messages, nothing has to be read.
_PLAIN = re.compile(r"[^\W\d_](?:[^\W_]|[ .,;:?!'\"()-])*")
_MARKUP = re.compile(r"```\w*|^[ \t]*[-*+] \[[ xX]\] |[`*_~#>|]+", re.M)
_MARKS = re.compile(r"^[ \t]*(?:• |———$)", re.M)


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Derived from the log alone. `seq` is the log's last sequence; `log` the name that makes a cursor unambiguous. `rule` and `why` are
    the last decision about its newest turn; `left`: the decision was not to continue it for now. `current`: it is its key's current
    session. `undo_until`: it is deleted, and can be brought back until then. `processes`: how many run in its background.
    `model`: the model or agent chosen for it, None for the configured one. `folder`: the one chosen for its tools, None for its own.
    `attempt_at`: when its newest attempt began; `on_trial`: that one runs on trial. `tried_at`: when its last trial began. `lived_ms`: how
    long the attempt lived that a restart interrupted last; `deaths`: how many unclean deaths interrupted its newest turn.
    """

    session_id: str
    session_key: str
    log: str
    seq: int
    title: str | None = None
    created_at: int
    updated_at: int
    generation: int = 0
    pinned: bool = False
    archived: bool = False
    suspended: bool = False
    resume_pending: bool = False
    resume_reason: str | None = None
    last_resume_marked_at: int | None = None
    was_auto_reset: bool = False
    auto_reset_reason: str | None = None
    interrupted_restarts: int = 0
    queued: int = 0
    turn_state: TurnState = TurnState.NONE
    turn_id: str | None = None
    attempt: int = 0
    position: int = 0
    turn_seq: int = 0
    owner: int | None = None
    epoch: int = 0
    stop_requested: bool = False
    pruned_seq: int = 0
    current: bool = True
    left: bool = False
    rule: str | None = None
    why: str | None = None
    attempt_at: int = 0
    on_trial: bool = False
    tried_at: int | None = None
    lived_ms: int = 0
    deaths: int = 0
    model: str | None = None
    folder: str | None = None
    deleted_at: int | None = None
    undo_until: int | None = None
    processes: int = 0

    @property
    def deleted(self) -> bool:
        return self.deleted_at is not None

    @property
    def open_turn(self) -> bool:
        return self.turn_state in OPEN

    @property
    def state(self) -> str:
        """As users see it: idle, queued, running, waiting or interrupted."""
        if self.turn_state is TurnState.ANSWERED:
            return "running"
        if self.open_turn:
            return self.turn_state
        return "queued" if self.queued else "idle"


def title_of(text: str) -> str:
    """The title of a conversation without one: its first words, without the marks of Markdown."""
    start = text.lstrip()[:READ_CHARS]  # The text may be megabytes long.
    if _PLAIN.fullmatch(start):
        return brief(start)
    return brief(_MARKS.sub("", markdown.read(start).text)) or brief(start)


def brief(text: str) -> str:
    """On one line, as long as a title may be."""
    words = " ".join(text.split())
    return words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS - 1].rstrip() + "…"


def excerpt(text: str) -> str:
    """What was last said in a conversation, for a list: on one line, without the marks of Markdown."""
    words = " ".join(_MARKUP.sub("", text[: EXCERPT_CHARS * 4]).split())
    return words if len(words) <= EXCERPT_CHARS else words[: EXCERPT_CHARS - 1].rstrip() + "…"


def numbered_title(title: str | None, number: int) -> str | None:
    """The title of a conversation that replaces another: the same words, and its number among the conversations of its key."""
    if title is None:
        return None
    words = re.sub(r" \(\d+\)$", "", title)
    return f"{words} ({number})"


class Lease(msgspec.Struct, frozen=True):
    """Who may write a session's turn now. Every write of a turn carries it; a stale epoch is refused (P2)."""

    session_id: str
    owner: int
    epoch: int
