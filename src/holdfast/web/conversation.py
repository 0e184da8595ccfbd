"""A conversation as one answer shows it: a page of it, the newest first to be chosen, each text with its beginning and its end.

What an answer costs to make and to send is bounded here, whatever the conversation holds (P8).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.core import output
from holdfast.core import transcript as t
from holdfast.core.errors import BadInput
from holdfast.core.sessions import Session
from holdfast.core.turns import shown as shown_state
from holdfast.web import views
from holdfast.web.times import rfc3339, rfc3339_or_none

MOST_MESSAGES = 500
# Characters of a page; the message that exceeds it is its last.
MOST_CHARS = 512 * 1024
MOST_CALLS = 200
MOST_ARGUMENTS, BRIEF_ARGUMENTS = 64 * 1024, 1024


def session(found: Session, transcript: t.Transcript) -> views.SessionView:
    return views.SessionView(**views.fields(found), **_newest(found, transcript))


def snapshot(found: Session, transcript: t.Transcript, because: str) -> views.SnapshotView:
    return views.SnapshotView(**views.fields(found), **_newest(found, transcript), because=because)


def page(found: Session, transcript: t.Transcript, before: str | None, limit: int) -> views.MessagePageView:
    """The page before a message, or the newest."""
    messages = _messages(transcript)
    if before is not None:
        place = next((place for place, message in enumerate(messages) if message.id == before), None)
        if place is None:
            raise BadInput(f"before={before!r} is not a message of this session. Use the `earlier` of the page you have.")
        messages = messages[:place]
    return views.MessagePageView(**_page(found, transcript, messages, limit))


def _messages(transcript: t.Transcript) -> list[t.Message]:
    return [*transcript.messages, *transcript.queued.values()]


def _newest(found: Session, transcript: t.Transcript) -> dict[str, Any]:
    shown = _page(found, transcript, _messages(transcript), MOST_MESSAGES)
    if shown["earlier"] is None:  # Also a turn of which every message is damaged.
        shown["turns"] = [_turn(turn) for turn in transcript.turns]
    return shown | {
        "cursor": f"{found.log}.{transcript.seq}",
        "question": _question(transcript.question) if transcript.question else None,
    }


def _page(found: Session, transcript: t.Transcript, messages: Sequence[t.Message], limit: int) -> dict[str, Any]:
    """The last of these messages that fit into a page, and their turns."""
    shown: list[views.MessageView] = []
    size = 0
    for message in reversed(messages[-limit:]):
        view = _message(message, found.log)
        shown.append(view)
        size += _size(view)
        if size >= MOST_CHARS:
            break
    shown.reverse()
    ids = {view.turn_id for view in shown}
    turns = [_turn(turn) for turn in transcript.turns if turn.id in ids]
    return {"messages": shown, "earlier": shown[0].id if len(shown) < len(messages) else None, "turns": turns}


def _size(view: views.MessageView) -> int:
    return len(view.text) + (len(msgspec.json.encode(view.tool_calls)) if view.tool_calls else 0)


def _message(message: t.Message, log: str) -> views.MessageView:
    text, omitted = output.shown_message(message.text)
    view = views.MessageView(
        id=message.id,
        role=message.role,
        text=text,
        turn_id=message.turn_id,
        created_at=rfc3339(message.created_at),
        status=message.status,
    )
    if omitted:
        view.text_omitted, view.whole_after = omitted, f"{log}.{max(0, message.seq - 1)}"
    if message.role == "assistant":
        view.tool_calls = _calls(message.tool_calls, log)
        if omitted := len(message.tool_calls) - len(view.tool_calls):
            view.tool_calls_omitted = omitted
    elif message.role == "interruption":
        view.state, view.reason = message.state or "neutral", message.reason
        view.rule, view.decision, view.attempt = message.rule, message.decision, message.attempt
    return view


def _calls(calls: list[t.ToolCall], log: str) -> list[views.ToolCallView]:
    """The newest calls of a turn; once they make up a page, the earlier ones with less of what they said."""
    shown: list[views.ToolCallView] = []
    size = 0
    for call in reversed(calls[-MOST_CALLS:]):
        view = _call(call, log, briefly=size >= MOST_CHARS)
        size += len(view.result or "") + len(view.output) + len(msgspec.json.encode(view.arguments))
        shown.append(view)
    return shown[::-1]


def _call(call: t.ToolCall, log: str, *, briefly: bool) -> views.ToolCallView:
    shorten = output.glimpse if briefly else output.shown
    said, put_out = shorten(call.result or ""), shorten(call.output)
    view = views.ToolCallView(
        call_id=call.call_id,
        name=call.name,
        arguments=_arguments(call.arguments, BRIEF_ARGUMENTS if briefly else MOST_ARGUMENTS),
        outcome=call.outcome,
        result=None if call.result is None else said.text,
        output=put_out.text,
    )
    if said.omitted:
        view.result_omitted = said.omitted
    if omitted := put_out.omitted + call.output_omitted:
        view.output_omitted = omitted
    if said.omitted or omitted:
        view.whole_after = f"{log}.{max(0, call.seq - 1)}"
    return view


def _arguments(arguments: dict[str, Any], most: int) -> dict[str, Any]:
    shown: dict[str, Any] = output.shown_value(arguments)
    size = len(msgspec.json.encode(shown))
    return shown if size <= most else {"[...]": output.left_out(size).strip()}


def _turn(turn: t.Turn) -> views.TurnView:
    return views.TurnView(
        id=turn.id,
        generation=turn.generation,
        attempt=turn.attempt,
        cause=turn.cause,
        state=shown_state(turn.state),
        outcome=turn.outcome,
        rule=turn.rule,
        started_at=rfc3339(turn.started_at),
        ended_at=rfc3339_or_none(turn.ended_at),
        error=None if turn.error is None else output.shown(turn.error).text,
    )


def _question(question: t.Question) -> views.QuestionView:
    return views.QuestionView(
        question_id=question.question_id,
        turn_id=question.turn_id,
        call_id=question.call_id,
        text=output.shown_message(question.text).text,
        asked_at=rfc3339(question.asked_at),
        expires_at=rfc3339(question.expires_at),
    )
