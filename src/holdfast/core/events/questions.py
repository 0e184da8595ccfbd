"""Questions to people, their answers, and what people allow for a whole conversation."""

from holdfast.core.elicitation import Elicited
from holdfast.core.events.base import Event, Says
from holdfast.core.events.steps import ProposedCall


class QuestionAsked(Says, frozen=True):
    """`form`: question, approval or elicitation. `call`: the very call an approval is for, `fingerprint` what it is known by, and `pattern`
    what "always for this conversation" would allow, None where that is not offered; `theirs`: the agent itself asks, and keeps that for
    itself. `for_operators`: only an operator may approve it, not also the one who asked for the work. `elicited`: what the call itself
    asks for, once it has started. `ends_attempt`: as version 0.1 wrote it, where asking ended the attempt; since then `TurnWaiting` does.
    """

    kind = "question.asked"
    question_id: str
    call_id: str
    expires_at: int
    form: str = "question"
    choices: tuple[str, ...] = ()
    call: ProposedCall | None = None
    fingerprint: str | None = None
    pattern: str | None = None
    for_operators: bool = False
    theirs: bool = False
    elicited: Elicited | None = None
    ends_attempt: bool = True

    @property
    def move(self) -> str:
        return "question.asked (0.1)" if self.ends_attempt else self.kind


class QuestionAnswered(Says, frozen=True):
    """`verdict`, `scope` and `reason` (for the agent): of an approval; of what a call itself asked, the verdict is `given`. `last`: no
    other question of the turn is open now, so that it can continue.
    """

    kind = "question.answered"
    question_id: str
    call_id: str
    message_id: str | None = None
    by: str | None = None
    verdict: str | None = None
    scope: str | None = None
    reason: str | None = None
    last: bool = True
    dedup_key: str | None = None

    @property
    def move(self) -> str:
        return "question.answered (last)" if self.last else self.kind


class QuestionClosed(Event, frozen=True):
    """Nobody waits for its answer any more: the call that asked is over, or asks again."""

    kind = "question.closed"
    question_id: str
    call_id: str
    why: str


class RuleAdded(Event, frozen=True):
    """Calls that match `pattern`, which names their tool, need no further approval in this conversation. `by`: who said so."""

    kind = "rule.added"
    rule_id: str
    pattern: str
    by: str


class RuleRemoved(Event, frozen=True):
    kind = "rule.removed"
    rule_id: str
    by: str
