"""Errors, grouped by who must act. A constructor takes data and writes the sentence: what happened, to what, what to do."""

from collections.abc import Iterable, Sequence


class HoldfastError(Exception):
    """The root of all errors that Holdfast raises on purpose. `code` is for programs, the text for people."""

    code = "error"


class Bug(HoldfastError):
    """Something impossible happened. The task fails loudly; nothing handles this."""

    code = "bug"


class Unavailable(HoldfastError):
    """It failed now and may work later: try again after `retry_after_s`."""

    code = "unavailable"

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class StoreFull(Unavailable):
    """The disk is full. Nothing was stored; nothing may be acknowledged."""

    code = "store_full"

    def __init__(self) -> None:
        super().__init__(
            "The disk that holds the conversations is full. Free some space; Holdfast then continues by itself.",
            retry_after_s=5.0,
        )


class StoreGone(Unavailable):
    """The path of the database leads to another file, or to none. The request may have been stored in the file that is still open, but must
    not be acknowledged: a process that opens the path will not find it.
    """

    code = "store_gone"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"The database {path} is no longer the file that Holdfast opened: it was removed, replaced or moved away. "
            "Nothing is stored or shown until the same file is back. "
            "Put it back, or stop Holdfast and start it again with what is there now.",
            retry_after_s=5.0,
        )


class StoreAway(Unavailable):
    """Another program holds the database, or nobody can reach it for now. Nothing was stored. What runs can be kept elsewhere until it is
    back; what comes from outside is not acknowledged.
    """

    code = "store_away"

    def __init__(self) -> None:
        super().__init__(
            "Another program has locked the database, so nothing can be stored at the moment. "
            "Try again in a while; Holdfast continues by itself as soon as the database is free."
        )


class StoreClosed(Unavailable):
    """The store is closed or broken; the request was not carried out."""

    code = "store_closed"

    def __init__(self, why: str = "it was closed") -> None:
        super().__init__(f"The store cannot be used: {why}.")


class Held(Unavailable):
    """Only one process can have it, and another one has it for now."""

    code = "held"


class Refused(HoldfastError):
    """Will not be done, now or later. Tell the requester why."""

    code = "refused"


class NotFound(Refused):
    code = "not_found"

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"There is no {what} {name!r} here.")
        self.what = what


class Deleted(NotFound):
    """`undoable`: it can still be brought back."""

    code = "deleted"

    def __init__(self, session_id: str, *, undoable: bool) -> None:
        super().__init__("session", session_id)
        back = f"It can still be brought back: `holdfast delete --undo {session_id}`." if undoable else "Its content is gone."
        self.args = (f"The session {session_id!r} was deleted. {back}",)


class BlobLost(NotFound):
    """A row names it, but its file is missing or damaged."""

    code = "blob_lost"

    def __init__(self, digest: str) -> None:
        super().__init__("blob", digest)
        self.args = (f"The bytes of {digest!r} are missing or damaged on disk. `holdfast restore` brings them back if a backup has them.",)


class AttachmentGone(Refused):
    code = "attachment_gone"

    def __init__(self, attachment_id: str) -> None:
        super().__init__(
            f"There is no attachment {attachment_id!r} here. An upload that is in no message is kept for 24 hours. Upload the file again."
        )


class BadInput(Refused):
    code = "bad_input"


class BadPlace(BadInput):
    def __init__(self, before: str) -> None:
        super().__init__(f"before={before!r} is not a place in the list. Use the `next` of the page before.")


class BadState(BadInput):
    def __init__(self, state: str, states: Iterable[str]) -> None:
        super().__init__(f"state={state!r} is not one of {', '.join(states)}.")


class NotStorable(BadInput):
    """For a caller who handed in something that cannot be written down. `error`: what Python raised for it."""

    def __init__(self, error: Exception) -> None:
        what = {UnicodeEncodeError: "text with half a character (a lone surrogate)", OverflowError: "a number that is too large"}
        super().__init__(f"This cannot be stored: {what.get(type(error), 'values that are nested too deeply')}.")


class UnfitFolder(BadInput):
    """A folder in which no conversation can work."""

    code = "unfit_folder"

    def __init__(self, folder: str, why: str) -> None:
        super().__init__(f"A conversation cannot work in {folder!r}: {why}. Choose another folder.")


class LaneFull(Refused):
    code = "lane_full"

    def __init__(self, waiting: int) -> None:
        super().__init__(
            f"{waiting} messages are already waiting in this conversation. Wait for an answer, or stop the turn, then send it again."
        )
        self.waiting = waiting


class ConversationBusy(Refused):
    """The message was not to wait. It is on record as refused."""

    code = "busy"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"The session {session_id!r} is busy, so the message was refused. Wait for the answer, or send it again with the mode queue."
        )


class CannotEdit(Refused):
    code = "cannot_edit"

    def __init__(self, message_id: str, why: str) -> None:
        super().__init__(f"The message {message_id!r} cannot be edited: {why}. Send a new message instead.")


class DraftChanged(Refused):
    code = "draft_changed"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"The draft of session {session_id!r} was changed elsewhere. Read it again, and choose.")


class TooLate(Refused):
    code = "too_late"

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"The message {message_id!r} is not waiting any more: a turn has taken it, or it was refused. Stop the turn instead."
        )


class NothingToStop(Refused):
    code = "nothing_to_stop"

    def __init__(self, session_id: str, turn_id: str | None = None) -> None:
        super().__init__(
            f"Turn {turn_id!r} of session {session_id!r} is not open, so there is nothing to stop."
            if turn_id
            else f"No turn of session {session_id!r} is running or waiting, so there is nothing to stop."
        )


class QuestionClosed(Refused):
    """The answer came too late, or while the conversation is suspended. `state` says why."""

    def __init__(self, question_id: str, state: str) -> None:
        if state == "suspended":
            told = f"The conversation of the question {question_id!r} is suspended. Resume it first: the question is still open there."
        elif state == "ended":
            told = f"The turn that asked the question {question_id!r} has ended without an answer. Send a message to continue."
        else:
            told = f"The question {question_id!r} is {state} and cannot be answered any more. Send a message to continue."
        super().__init__(told)
        self.code = f"question_{state}"


class UnknownChoice(Refused):
    """`choices`: what can be chosen; nothing where a question leaves the answer open."""

    code = "unknown_choice"

    def __init__(self, question_id: str, choice: str, choices: Sequence[str]) -> None:
        if choices:
            told = f"{choice!r} is not a choice of the question {question_id!r}. Choose one of: {', '.join(map(repr, choices))}."
        else:
            told = f"The question {question_id!r} has no choices. Answer it with `text`."
        super().__init__(told)


class NotYours(Refused):
    """Somebody else may answer it. `by_asker`: the person who asked for the work."""

    code = "not_yours"

    def __init__(self, question_id: str, *, by_asker: bool = True) -> None:
        who = "the person who asked for the work, or by an administrator" if by_asker else "an administrator"
        super().__init__(f"{question_id!r} can be answered only by {who}.")


class DuplicateOtherContent(Refused):
    code = "client_id_reused"

    def __init__(self, dedup_key: str) -> None:
        super().__init__(f"The id {dedup_key!r} was already used for something else. Use a new client_id for a new request.")


class NotNow(Refused):
    """The request does not fit what the gateway is doing now."""

    code = "not_now"

    def __init__(self, what: str, state: str) -> None:
        super().__init__(f"The gateway is {state}, so it cannot {what} now. Wait until it has finished, then try again.")


class HandOverFailed(Refused):
    """The old process still serves."""

    code = "hand_over_failed"

    def __init__(self, why: str) -> None:
        super().__init__(f"The new process did not take over: {why} The old process still serves, and nothing was lost.")


class StoppedInstead(HandOverFailed):
    """The old process stops, and no new one takes over."""

    def __init__(self) -> None:
        Refused.__init__(self, "The new process did not take over: Holdfast was asked to stop instead. Nothing was lost.")


class Conflict(HoldfastError):
    """Something changed in the meantime. Reload and decide again."""

    code = "conflict"


class StaleEpoch(Conflict):
    """The lease of this write is no longer valid: another owner has the session, or the turn is over."""

    code = "stale_epoch"

    def __init__(self, session_id: str, epoch: int) -> None:
        super().__init__(f"Lease {epoch} on session {session_id!r} is not held any more; nothing was written.")


class ToldToStop(Conflict):
    """The process that wanted this turn has been told to stop: the next process takes it."""

    code = "told_to_stop"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"This process is stopping, so it takes no turn of session {session_id!r} any more.")


class StalePosition(Conflict):
    """The turn already has an event at this position."""

    code = "stale_position"

    def __init__(self, turn_id: str, expected: int, actual: int) -> None:
        super().__init__(f"Turn {turn_id!r} stands at position {actual}, not {expected}; nothing was written.")
        self.actual = actual


class PositionGap(Conflict):
    """Events of this turn are missing before this position."""

    code = "position_gap"

    def __init__(self, turn_id: str, expected: int, actual: int) -> None:
        super().__init__(f"Turn {turn_id!r} stands at position {actual}; writing at {expected} would leave a gap. Nothing was written.")
        self.actual = actual


class Taken(Conflict):
    """A message that was believed to wait does so no more."""

    code = "taken"

    def __init__(self, message_id: str) -> None:
        super().__init__(f"The message {message_id!r} has just been taken; nothing was written. Try again.")


class ApprovalVoid(Conflict):
    """A call names an approval that is not for it, was denied, or is used up."""

    code = "approval_void"

    def __init__(self, question_id: str) -> None:
        super().__init__(f"The approval {question_id!r} does not allow this call; nothing was written.")


class BlobMissing(Conflict):
    """Content names a blob that is not stored. Its bytes must be put again."""

    code = "blob_missing"

    def __init__(self, digest: str) -> None:
        super().__init__(f"The blob {digest!r} is not stored any more; nothing was written. Put its bytes again.")
