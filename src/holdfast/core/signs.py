"""What recovery decides by: a turn's last sign of life, whether its newest attempt has something of its own to show, and whether it stands
at results that nobody processed. All by place: what comes late moves nothing that came after it in time.
"""

from holdfast.core import events as e
from holdfast.core.effects import ToolOutcome
from holdfast.core.messages import Turn
from holdfast.core.steps import Key
from holdfast.core.turns import TurnState

_SIGN, _SPEAKS, _READS, _RESULT = 1, 2, 4, 8
# What only the turn's own process, or its user, can add to it. Nothing that a recovery writes is a sign of life.
_NOTED = {
    e.TurnAlive: _SIGN,
    e.TurnWaiting: _SIGN,
    e.CauseTaken: _SIGN,
    e.ModelFailed: _SIGN,
    e.ContextCompacted: _SIGN,
    e.Text: _SIGN | _SPEAKS | _READS,
    e.Reasoning: _SIGN | _SPEAKS | _READS,
    e.ModelResponded: _SIGN | _SPEAKS | _READS,
    e.ToolStarted: _SIGN | _READS,
    e.ToolOutput: _SIGN,
    e.ToolFinished: _SIGN | _SPEAKS | _RESULT,
    e.QuestionAsked: _SIGN,
    e.QuestionAnswered: _SIGN | _RESULT,
}


class Signs:
    """Of one turn, which starts with a sign of life at `at`. The keys are the places of what they are named after."""

    __slots__ = ("attempt", "read", "result", "signed")

    def __init__(self, at: Key) -> None:
        self.signed = self.attempt = at
        self.result: Key = (-1, -1)
        self.read: Key = (-1, -1)

    def note(self, turn: Turn, event: e.Event, at: Key, time: int) -> None:
        noted = _NOTED.get(type(event), 0)
        if not noted:
            return
        if isinstance(event, e.ToolFinished) and event.outcome is ToolOutcome.UNKNOWN:
            noted = _RESULT  # A recovery made it up.
        if noted & _SIGN and at >= self.signed:
            self.signed, turn.signed_at = at, time or None
        if noted & _SPEAKS and at >= self.attempt:
            turn.spoke = True
        if noted & _RESULT:
            self.result = max(self.result, at)
        elif noted & _READS:
            self.read = max(self.read, at)
        else:
            return
        if turn.state is not TurnState.ENDED:
            turn.unread_results = self.result >= self.read
