"""The rows that follow from questions, their answers, and what people allow."""

from holdfast.core import approvals, elicitation
from holdfast.core import events as e
from holdfast.store.heads import Head
from holdfast.store.projection.common import Rows, remember
from holdfast.store.projection.messages import TAKEN
from holdfast.store.projection.turns import released
from holdfast.store.rows import Change, Delete, Insert, Update

ASKED = Insert("question", "question_id", "session", "turn", "call_id", "state", "expires_at", "form", "seq")
ANSWERED = Update("question", "state", "message", "verdict", where="question_id = ?")
USED_UP = Update("question", "state = 'used'", where="question_id = ?")
QUESTION_ENDED = Update("question", "state = 'ended'", where="question_id = ? AND state = 'open'")
QUESTIONS_GONE = Delete("question", where="session = ? AND state = 'open'")
RULE = Insert("rule", "rule_id", "session", "pattern", "author", "at", conflict="DO NOTHING")
RULE_GONE = Delete("rule", where="rule_id = ?")
RULES_GONE = Delete("rule", where="session = ?")


def _question_asked(head: Head, event: e.QuestionAsked, at: int, in_turn: bool) -> list[Change]:
    freed = released(head) if event.ends_attempt else []
    row = (event.question_id, head.session, head.turn, event.call_id, "open", event.expires_at, event.form, head.seq)
    return [*freed, (ASKED, row)]


def _question_answered(head: Head, event: e.QuestionAnswered, at: int, in_turn: bool) -> list[Change]:
    head.left = 0
    return [
        (ANSWERED, ("answered", event.message_id, event.verdict, event.question_id)),
        *remember(event.dedup_key, _said(event), head, event.question_id),
        *([(TAKEN, (head.session, event.message_id))] if event.message_id else []),
    ]


def _said(event: e.QuestionAnswered) -> bytes:
    if event.verdict == elicitation.GIVEN:
        return approvals.known_by(event.content, None, None)
    return approvals.known_by((event.reason or "") if event.verdict else event.content, event.verdict, event.scope)


def _question_closed(head: Head, event: e.QuestionClosed, at: int, in_turn: bool) -> list[Change]:
    return [(QUESTION_ENDED, (event.question_id,))]


def _tool_started(head: Head, event: e.ToolStarted, at: int, in_turn: bool) -> list[Change]:
    return [] if event.approval is None else [(USED_UP, (event.approval,))]


def _rule_added(head: Head, event: e.RuleAdded, at: int, in_turn: bool) -> list[Change]:
    return [(RULE, (event.rule_id, head.session, event.pattern, event.by, at))]


def _rule_removed(head: Head, event: e.RuleRemoved, at: int, in_turn: bool) -> list[Change]:
    return [(RULE_GONE, (event.rule_id,))]


ROWS: Rows = {
    e.QuestionAsked: _question_asked,
    e.QuestionAnswered: _question_answered,
    e.QuestionClosed: _question_closed,
    e.ToolStarted: _tool_started,
    e.RuleAdded: _rule_added,
    e.RuleRemoved: _rule_removed,
}
