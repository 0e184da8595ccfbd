"""What people have allowed for conversations: read from the catalog, and taken back."""

from holdfast.core.approvals import Rule
from holdfast.core.errors import NotFound
from holdfast.core.plans import approve
from holdfast.store import queries as q
from holdfast.store import reads
from holdfast.store.tx import Tx
from holdfast.store.work import run


def rules(tx: Tx, session_id: str | None) -> list[Rule]:
    rows = tx.query(q.RULES_ALL) if session_id is None else tx.query(q.RULES_OF, reads.session(tx, session_id).session_id)
    return [_rule(*row) for row in rows]


def remove_rule(tx: Tx, rule_id: str, by: str, at: int) -> Rule:
    rows = tx.query(q.RULE, rule_id)
    if not rows:
        raise NotFound("rule", rule_id)
    found = _rule(*rows[0])
    return run(tx, approve.take_back(found, by=by), at)


def _rule(rule_id: str, session_id: str, pattern: str, author: str, at: int) -> Rule:
    return Rule(rule_id=rule_id, session_id=session_id, pattern=pattern, by=author, at=at)
