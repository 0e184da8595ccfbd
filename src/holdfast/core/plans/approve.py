"""Whether a call may start because somebody approved it: decided where its start is recorded, and true once at most. And taking back what
was allowed for good.
"""

import msgspec

from holdfast.core import approvals
from holdfast.core.approvals import Rule
from holdfast.core.errors import ApprovalVoid
from holdfast.core.events import RuleRemoved, ToolStarted
from holdfast.core.plans import Plan, Write

ANSWERED = "answered"


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """An approval as it stands. `state` as in `answer.Snapshot`; `fingerprint`: of the call that was shown, None where its record does not
    read.
    """

    turn_id: str
    call_id: str
    state: str
    verdict: str | None
    fingerprint: str | None


def check(started: ToolStarted, *, turn_id: str | None, granted: Granted | None) -> None:
    """Raises `ApprovalVoid` unless it is approved, for this very call of this turn, and not used yet. `granted`: None where nothing of that
    id was asked.
    """
    made = approvals.fingerprint(started.name, started.arguments, started.place or "")
    wanted = Granted(turn_id=turn_id or "", call_id=started.call_id, state=ANSWERED, verdict=approvals.APPROVE, fingerprint=made)
    if granted != wanted:
        raise ApprovalVoid(started.approval or "")


def take_back(rule: Rule, *, by: str) -> Plan[Rule]:
    return Plan((Write(rule.session_id, RuleRemoved(rule_id=rule.rule_id, by=by)),), rule)
