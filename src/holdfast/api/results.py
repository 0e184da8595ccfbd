"""What a successful request to the HTTP API returns, apart from the views of sessions and conversations; and the shape of a failure."""

import msgspec


class Failure(msgspec.Struct, frozen=True):
    """`code` is for programs; `message` says what was wrong, with what, and what to do."""

    code: str
    message: str


class Failed(msgspec.Struct, frozen=True):
    error: Failure


# sessions


class CreatedSession(msgspec.Struct):
    session_id: str
    session_key: str


class StoppedTurn(msgspec.Struct):
    turn_id: str
    queued: int


class DeletedSession(msgspec.Struct):
    """Until `undo_until` it can be brought back; after that its content is removed."""

    session_id: str
    deleted_at: str
    undo_until: str


class ResetSession(msgspec.Struct):
    """`session_id` is the key's current session now. `changed`: this request began it; a session that was never used stays current."""

    session_id: str
    changed: bool


class ResumedSession(msgspec.Struct):
    """`continues`: its interrupted work continues. `changed`: false if nothing had to change."""

    session_id: str
    changed: bool
    continues: bool


class WantedFile(msgspec.Struct, kw_only=True):
    """`what`: `read` or `write`. `path`: absolute. `text`: what to write."""

    request_id: str
    what: str
    path: str
    text: str | None


class EditorWork(msgspec.Struct):
    """`used`: false where nothing will ever be wanted, because the settings do not allow it."""

    files: list[WantedFile]
    used: bool


# conversations


class Uploaded(msgspec.Struct):
    """`attachment_id` is for the `attachments` of a message, within a day."""

    attachment_id: str
    name: str
    size: int
    type: str


class EditedMessage(msgspec.Struct):
    """`effect`: `replaced` if the message still waits, `steered` if the turn that is open is given the new words as a correction, else
    `recorded`.
    """

    message_id: str
    session_id: str
    effect: str


class AcceptedMessage(msgspec.Struct):
    """`session_id`: where the message went. If the session is not current, the key's current one gets it; if it is suspended or past a
    reset boundary, a new one does; `/new` and `/resume` are answered where they lead. `question_id`: the question it answers, if it
    answers one.
    """

    message_id: str
    session_id: str
    question_id: str | None = None


class AcceptedAnswer(msgspec.Struct):
    question_id: str
    session_id: str


# the gateway


class CommandUsage(msgspec.Struct):
    """`form`: how it is written; `sentence`: what it does. `sends`: its text goes to the agent, as a message."""

    name: str
    form: str
    sentence: str
    sends: bool


class CommandList(msgspec.Struct):
    commands: list[CommandUsage]


class NewCode(msgspec.Struct):
    """Exchanged for a cookie by one `POST /api/login` within this many seconds; opening the page with `/#code=...` does that."""

    code: str
    expires_in_s: int


class Ordered(msgspec.Struct):
    gateway_state: str


class Released(msgspec.Struct):
    """Safe mode is over, if it was on."""

    safe_mode: bool


class Paused(msgspec.Struct):
    gateway_state: str
    holder: str
    until: str


class Restarted(msgspec.Struct):
    """`mode`: `hand_over` (the process `pid` of `version` serves now) or `exit` (this one ends, and its supervisor starts the next)."""

    mode: str
    pid: int
    version: str


class WithdrawnMessage(msgspec.Struct):
    """It is shown as refused; nobody answers it."""

    message_id: str
    session_id: str


class DraftView(msgspec.Struct):
    """What is typed and not sent. `rev` grows with every change."""

    text: str
    rev: int
