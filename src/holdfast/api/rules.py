"""What people allow for a whole conversation, as the API shows it."""

import msgspec

from holdfast.api.times import rfc3339
from holdfast.core.approvals import Rule

# What ends a rule.
RESET = "reset"


class RuleView(msgspec.Struct, kw_only=True):
    """Calls that match `pattern` need no approval in this session. `by`: who allowed them. `until`: what ends it, besides its removal: a
    reset of the session.
    """

    rule_id: str
    session_id: str
    pattern: str
    by: str
    created_at: str
    until: str


class RulesView(msgspec.Struct):
    rules: list[RuleView]


def rule(found: Rule) -> RuleView:
    return RuleView(
        rule_id=found.rule_id,
        session_id=found.session_id,
        pattern=found.pattern,
        by=found.by,
        created_at=rfc3339(found.at),
        until=RESET,
    )
