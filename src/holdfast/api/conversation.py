"""A conversation as it is shown: a page of it, counted from the newest message, long texts without their middle; or all of it.

A page costs a bounded amount to make and to send, whatever the conversation holds (P8).
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.api import parts, processes, views
from holdfast.api.schedules import due_time, schedule
from holdfast.api.times import rfc3339, rfc3339_or_none
from holdfast.core import approvals, content, delivery, model_choice, output
from holdfast.core.errors import BadInput
from holdfast.core.events import ModelResponded, ProposedCall
from holdfast.core.messages import Answered, Delivery, Failure, Message, Question, ToolCall, Turn, model_name
from holdfast.core.processes import Process, how_it_ended
from holdfast.core.schedules import Schedule
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.core.turns import shown as shown_state

MOST_MESSAGES = 500
# Characters of a page; the message that exceeds it is its last.
MOST_CHARS = 512 * 1024
MOST_CALLS = 200
MOST_PARTS = 1000
MOST_FAILURES = 20
MOST_PROCESSES = 20
MOST_RESPONSES = 50
MOST_ARGUMENTS, BRIEF_ARGUMENTS = 64 * 1024, 1024


def _arguments(arguments: dict[str, Any], most: int) -> dict[str, Any]:
    shown: dict[str, Any] = output.shown_value(arguments)
    size = len(msgspec.json.encode(shown))
    return shown if size <= most else {"[...]": output.left_out(size).strip()}


class Extent(NamedTuple):
    """How much of a conversation is shown, and how much of each text in it."""

    messages: int
    chars: int
    calls: int
    parts: int
    processes: int
    message: Callable[[str], output.Piece]
    output: Callable[[str], output.Piece]
    arguments: Callable[[dict[str, Any]], dict[str, Any]]


PAGE = Extent(
    messages=MOST_MESSAGES,
    chars=MOST_CHARS,
    calls=MOST_CALLS,
    parts=MOST_PARTS,
    processes=MOST_PROCESSES,
    message=output.shown_message,
    output=output.shown,
    arguments=lambda arguments: _arguments(arguments, MOST_ARGUMENTS),
)
BRIEF = PAGE._replace(output=output.glimpse, arguments=lambda arguments: _arguments(arguments, BRIEF_ARGUMENTS))
WHOLE = Extent(sys.maxsize, sys.maxsize, sys.maxsize, sys.maxsize, sys.maxsize, output.Piece, output.Piece, lambda arguments: arguments)


def session(found: Session, transcript: Transcript, extent: Extent = PAGE, *, schedules: Sequence[Schedule] = ()) -> views.SessionView:
    return views.SessionView(**views.fields(found), **_newest(found, transcript, extent), **_scheduled(schedules))


def snapshot(found: Session, transcript: Transcript, because: str, *, schedules: Sequence[Schedule] = ()) -> views.SnapshotView:
    return views.SnapshotView(**views.fields(found), **_newest(found, transcript, PAGE), **_scheduled(schedules), because=because)


def _scheduled(schedules: Sequence[Schedule]) -> dict[str, Any]:
    return {"schedules": [schedule(each) for each in schedules]}


def page(found: Session, transcript: Transcript, before: str | None, limit: int) -> views.MessagePageView:
    """The page before a message, or the newest."""
    messages = _messages(transcript)
    if before is not None:
        index = next((index for index, message in enumerate(messages) if message.id == before), None)
        if index is None:
            raise BadInput(f"before={before!r} is not a message of this session. Use the `earlier` of the page you have.")
        messages = messages[:index]
    return views.MessagePageView(**_page(found, transcript, messages, PAGE._replace(messages=limit)))


def _messages(transcript: Transcript) -> list[Message]:
    return [*transcript.messages, *transcript.queued.values()]


def _newest(found: Session, transcript: Transcript, extent: Extent) -> dict[str, Any]:
    shown = _page(found, transcript, _messages(transcript), extent)
    if shown["earlier"] is None:  # Also a turn of which every message is damaged.
        shown["turns"] = [_turn(turn, transcript) for turn in transcript.turns]
    above = transcript.above_answer
    return shown | {
        "cursor": f"{found.log}.{transcript.seq}",
        "answer_below": above.id if above else None,
        "questions": [_question(question, extent) for question in transcript.questions],
        "processes": _processes(list(transcript.processes.values()), extent),
        "usage": views.usage(transcript.spent),
    }


def _page(found: Session, transcript: Transcript, messages: Sequence[Message], extent: Extent) -> dict[str, Any]:
    """The last of these messages that fit into a page, and their turns."""
    shown: list[views.MessageView] = []
    size = 0
    for message in reversed(messages[-extent.messages :]):
        view = _message(message, found.log, extent)
        shown.append(view)
        size += _size(view)
        if size >= extent.chars:
            break
    shown.reverse()
    ids = {view.turn_id for view in shown}
    turns = [_turn(turn, transcript) for turn in transcript.turns if turn.id in ids]
    return {"messages": shown, "earlier": shown[0].id if len(shown) < len(messages) else None, "turns": turns}


def _size(view: views.MessageView) -> int:
    """`text` repeats what `parts` say and counts once."""
    said = sum(len(part.text) for part in view.parts if isinstance(part, views.TextPartView))
    return max(len(view.text), said) + (len(msgspec.json.encode(view.tool_calls)) if view.tool_calls else 0)


def _message(message: Message, log: str, extent: Extent) -> views.MessageView:
    text, omitted = extent.message(message.text)
    view = views.MessageView(
        id=message.id,
        role=message.role,
        text=text,
        parts=[],
        turn_id=message.turn_id,
        created_at=rfc3339(message.created_at),
        status=message.status,
    )
    if message.role == "user" and message.sender is not None:
        view.sender = message.sender
        if message.sender_name:
            view.sender_name = message.sender_name
    if message.edited_at is not None:
        view.edited_at = rfc3339(message.edited_at)
    if omitted:
        view.text_omitted, view.whole_after = omitted, f"{log}.{max(0, message.seq - 1)}"
    if message.recovered:
        view.recovered = True
    if message.delivery is not None:
        view.delivery = _delivery(message.delivery)
    if message.role == "assistant" and message.made_of is not None:
        answer = message.answer
        view.parts = parts.answer(answer[-extent.parts :], extent.message, extent.chars)
        if omitted := len(answer) - len(view.parts):
            view.parts_omitted = omitted
        view.tool_calls = _calls(message.tool_calls, log, extent)
        if omitted := len(message.tool_calls) - len(view.tool_calls):
            view.tool_calls_omitted = omitted
        return view
    view.parts = [*parts.content(content.parts(message.content), extent.message)]
    if message.answers is not None:
        view.answers = _answers(message.answers)
    if message.cause is not None or message.role == "cause":
        view.cause = message.cause
        if message.schedule is not None:
            view.schedule = due_time(message.schedule)
    if message.role == "interruption":
        view.state, view.reason = message.state or "neutral", message.reason
        view.rule, view.decision, view.attempt = message.rule, message.decision, message.attempt
        view.written, view.step, view.offset = message.written or 0, message.step or 0, message.offset
        if message.cause is not None:
            view.cause = message.cause
        if (awaits := message.awaits) is not None:
            view.stream_id, view.tries, view.first_seen = awaits.stream_id, awaits.tries, rfc3339(awaits.first_seen)
    return view


def _delivery(found: Delivery) -> views.DeliveryView:
    return views.DeliveryView(
        delivery_id=found.delivery_id,
        state=delivery.overall(found.states),
        states=[*found.states],
        tries=found.tries,
        retry_at=rfc3339(found.retry_at) if found.retry_at else None,
        error=found.error,
    )


def _answers(answered: Answered) -> views.AnswersView:
    call = None if answered.name is None else views.QuestionCallView(name=answered.name, arguments=BRIEF.arguments(answered.arguments))
    return views.AnswersView(
        question_id=answered.question_id,
        kind=answered.form,
        text=BRIEF.output(answered.text).text,
        call=call,
        by=answered.by,
        verdict=answered.verdict,
    )


def _calls(calls: list[ToolCall], log: str, extent: Extent) -> list[views.ToolCallView]:
    """The newest calls of a turn; once they make up a page, the earlier ones with less of what they said."""
    shown: list[views.ToolCallView] = []
    size = 0
    for call in reversed(calls[-extent.calls :]):
        view = _call(call, log, extent if size < extent.chars else BRIEF)
        size += len(view.result or "") + len(view.output) + len(msgspec.json.encode(view.arguments))
        shown.append(view)
    return shown[::-1]


def _call(call: ToolCall, log: str, extent: Extent) -> views.ToolCallView:
    said, put_out = extent.output(call.result or ""), extent.output(call.output)
    view = views.ToolCallView(
        call_id=call.call_id,
        step=call.step,
        name=call.name,
        arguments=extent.arguments(call.arguments),
        outcome=call.outcome,
        result=None if call.result is None else said.text,
        output=put_out.text,
        started_at=rfc3339(call.started_at),
    )
    if call.finished_at is not None:
        view.finished_at = rfc3339(call.finished_at)
    if call.content is not None and not isinstance(call.content, str):
        view.result_parts = parts.content(call.content, extent.output)
    if said.omitted:
        view.result_omitted = said.omitted
    if omitted := put_out.omitted + call.output_omitted:
        view.output_omitted = omitted
    if said.omitted or omitted:
        view.whole_after = f"{log}.{max(0, call.seq - 1)}"
    if call.recovered:
        view.recovered = True
    if (late := call.late) is not None:
        result = extent.output(late.result).text
        view.late = views.LateResultView(outcome=late.outcome, result=result, finished_at=rfc3339(late.finished_at))
    return view


def _turn(turn: Turn, transcript: Transcript) -> views.TurnView:
    view = views.TurnView(
        id=turn.id,
        generation=turn.generation,
        attempt=turn.attempt,
        steps=turn.steps,
        cause=turn.cause,
        state=shown_state(turn.state),
        outcome=turn.outcome,
        rule=turn.rule,
        started_at=rfc3339(turn.started_at),
        ended_at=rfc3339_or_none(turn.ended_at),
        error=None if turn.error is None else output.shown(turn.error).text,
    )
    if turn.stopped_because is not None:
        view.stopped_because = turn.stopped_because
    if turn.failures:
        view.failures = [_failure(failure) for failure in turn.failures[-MOST_FAILURES:]]
    if turn.spent.requests:
        view.usage = views.usage(turn.spent)
    if turn.steps:
        responses = [step.response for step in transcript.steps_of(turn.id)[-MOST_RESPONSES:]]
        view.responses = [_response(response) for response in responses if response is not None]
    if thoughts := transcript.thoughts_of(turn.id)[-MOST_RESPONSES:]:
        view.thoughts = [views.ThoughtView(step=each.step, text=each.text, kept=each.kept) for each in thoughts]
    if turn.model:
        view.model = turn.model
    if turn.chosen and model_choice.is_agent(turn.chosen):
        view.agent = turn.chosen
    return view


def _response(response: ModelResponded) -> views.ResponseView:
    usage = response.usage
    return views.ResponseView(
        step=response.step,
        model=model_name(response.provider, response.model),
        finish=response.finish,
        input=usage.input,
        output=usage.output,
        cached=usage.cached,
        stored=usage.stored,
        thought=usage.thought,
        cost=response.cost,
    )


def _failure(failure: Failure) -> views.FailureView:
    event = failure.event
    return views.FailureView(
        at=rfc3339(failure.at),
        step=event.step,
        model=event.model,
        tries=event.tries,
        error=event.error,
        why=output.shown(event.why).text,
        retry_at=rfc3339_or_none(event.retry_at),
    )


def _question(question: Question, extent: Extent) -> views.QuestionView:
    """What somebody is to approve is shown whole, however long it is."""
    extent = WHOLE if question.form == approvals.FORM else extent
    return views.QuestionView(
        question_id=question.question_id,
        kind=question.form,
        turn_id=question.turn_id,
        call_id=question.call_id,
        text=extent.message(question.text).text,
        parts=parts.content(question.parts, extent.message),
        choices=list(question.choices),
        call=None if question.call is None else _asking(question.call, extent),
        pattern=question.pattern,
        asked_at=rfc3339(question.asked_at),
        expires_at=rfc3339(question.expires_at),
    )


def _processes(known: Sequence[Process], extent: Extent) -> list[processes.ProcessView]:
    """All that run, and the newest that ended, in the order of their starts."""
    ended = [process.process_id for process in known if process.end is not None]
    hidden = set(ended[: -extent.processes] if len(ended) > extent.processes else ())
    return [process(each, extent) for each in known if each.process_id not in hidden]


def process(process: Process, extent: Extent = WHOLE) -> processes.ProcessView:
    end = process.end
    return processes.ProcessView(
        process_id=process.process_id,
        session_id=process.session_id,
        command=extent.output(process.command).text,
        state="running" if end is None else "ended",
        turn_id=process.turn_id,
        started_at=rfc3339(process.started_at),
        notify=process.notify,
        patterns=list(process.patterns),
        consumed=process.consumed,
        ended_at=None if end is None else rfc3339(end.ended_at),
        how=None if end is None else how_it_ended(process, end),
        code=None if end is None else end.code,
        signal=None if end is None else end.signal,
        problem=None if end is None else end.problem,
        lost=None if end is None else end.lost,
        stopped=end is not None and end.stopped,
        ended_by=None if end is None else end.by,
    )


def _asking(call: ToolCall | ProposedCall, extent: Extent) -> views.QuestionCallView:
    return views.QuestionCallView(name=call.name, arguments=extent.arguments(call.arguments))
