"""The end of a turn, whatever ends it: open calls are closed, what was said becomes a record, a chat is told, and the turn is over (P3)."""

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.core import content, notices, replies, resume
from holdfast.core.content import Content
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import Event, ToolFinished, TurnEnded
from holdfast.core.messages import ToolCall, answer_id
from holdfast.core.recovery import close_every_call
from holdfast.core.turns import Outcome

# The tool with which an agent gives the user a file.
ATTACH = "attach_file"
NO_ANSWER = "Resumed after an interruption, but produced no answer."
ENDED_BY_ITSELF = "the recovery ended by itself"
STOPPED_WAITING = "The turn was stopped before an answer came."
ENDED_WAITING = "The turn ended before an answer came."


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that is about to end, as far as it came. `said`: its answer so far; `begun`: the attempt that began to write its open step.
    `asking`: the calls that wait for an answer. `unread_results`: it stands at tool results that nobody processed. `resume_pending`: its
    session is still marked for an interruption.
    """

    session_key: str
    turn_id: str
    said: Content
    begun: int = 0
    anchor: str | None = None
    calls: Sequence[ToolCall] = ()
    asking: tuple[str, ...] = ()
    unread_results: bool = False
    resume_pending: bool = False


def by_agent(turn: Unfinished, outcome: Outcome, *, error: str | None = None, recovers: bool, said_now: bool) -> tuple[Event, ...]:
    """The end of an attempt in its own process: the agent is done, or was stopped, or failed. `recovers`: the turn was interrupted before;
    such an attempt that ends by itself without an answer is not tried again (R4). `said_now`: this attempt itself has said something.
    What earlier attempts said and people saw is on record either way (P7).
    """
    rule, why = None, None
    if recovers and outcome is not Outcome.CANCELLED:
        tried = resume.after_recovery(failed=outcome is Outcome.FAILED, answered=said_now and bool(turn.said))
        if tried is not None:
            outcome, error, rule, why = Outcome.FAILED, error or NO_ANSWER, tried.label, ENDED_BY_ITSELF
    return ending(
        turn,
        TurnEnded(outcome=outcome, error=error, rule=rule, why=why),
        told=None if error is None else notices.failed(error),
        # Only a completed turn, a stop or a rule takes the mark of an earlier interruption away (A13).
        still_pending=outcome is Outcome.FAILED and rule is None and turn.resume_pending,
    )


def expired(turn: Unfinished) -> tuple[Event, ...]:
    """A question of a waiting turn was not answered in time (R5): nothing of it is unfinished work."""
    why = notices.expired()
    return ending(turn, TurnEnded(outcome=Outcome.FAILED, error=why), told=why, unanswered=why)


def stopped(turn: Unfinished) -> tuple[Event, ...]:
    """A stop ends a turn that no process runs."""
    return ending(turn, TurnEnded(outcome=Outcome.CANCELLED))


def set_aside(turn: Unfinished, *, rule: str | None, why: str | None) -> tuple[Event, ...]:
    """A human's message continues from a turn that was left. The mark outlives it, until a turn completes (A13, A23)."""
    return ending(turn, TurnEnded(outcome=Outcome.SET_ASIDE, rule=rule, why=why), still_pending=True)


def ending(
    turn: Unfinished,
    ended: TurnEnded,
    *,
    told: str | None = None,
    unanswered: str | None = None,
    also: Iterable[Event] = (),
    owed: bool = True,
    still_pending: bool = False,
) -> tuple[Event, ...]:
    """The events of an end as `ended` says; the last one is the end itself. `told`: what a chat is told besides the answer. `unanswered`:
    the result of the calls that wait for an answer. `also`: what else ends the turn, or follows from its end. `owed`: the answer is sent.
    """
    stop, key = ended.outcome is Outcome.CANCELLED, turn.session_key
    words = unanswered or (STOPPED_WAITING if stop else ENDED_WAITING)
    events: list[Event] = [ToolFinished(call_id=call_id, outcome=ToolOutcome.FAILED, content=words) for call_id in turn.asking]
    interrupted = close_every_call([call for call in turn.calls if call.call_id not in turn.asking], stopped=stop)
    events += interrupted
    if answer := _answer(turn):
        written = replies.written(key, "assistant", answer_id(turn.turn_id), answer, anchor=turn.anchor)
        if turn.begun > 1:  # Only an interruption lies before a later attempt.
            written = msgspec.structs.replace(written, begun=turn.begun)
        events.append(written if owed else msgspec.structs.replace(written, delivery_id=None))
    if told is not None and replies.owed(key):
        events.append(replies.written(key, "notice", f"{turn.turn_id}.error", told, anchor=turn.anchor))
    unread = not stop and ended.outcome is not Outcome.COMPLETED and (bool(interrupted) or turn.unread_results)
    end = msgspec.structs.replace(ended, unread_results=unread, still_pending=still_pending)
    return (*events, *also, end)


def _answer(turn: Unfinished) -> Content:
    """What was said, with the files that the agent attached: so they reach a chat, too."""
    attaching = [call.content for call in turn.calls if call.name == ATTACH and call.outcome is ToolOutcome.DONE and call.content]
    files = dict.fromkeys(part for given in attaching for part in content.attached(given))
    return content.of((*content.parts(turn.said), *files)) if files else turn.said
