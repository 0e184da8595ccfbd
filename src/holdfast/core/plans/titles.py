"""Asking a model for the title of a session: recorded before it is asked, and what came of it after (P6: a title starts nothing)."""

import msgspec

from holdfast.core import titles
from holdfast.core.events import Event, SessionChanged, TitleAsked, TitleMade
from holdfast.core.plans import Plan, to_session
from holdfast.core.titles import Titling


def ask(found: Titling, *, named: bool, expected: Titling, turn_id: str, owner: int) -> Plan[bool]:
    """Whether the model may be asked. It may not if this is no longer as the caller saw it: another process was faster, or somebody has
    named the session. `named`: by its log, which may know of a name that an older version accepted.
    """
    if found != expected:
        return Plan((), False)
    if named:
        known = TitleMade(turn_id=turn_id, problem=titles.NAMED_FIRST, tries=found.tries)
        return Plan(tuple(to_session(found.session_id, [known])), False)
    asked = TitleAsked(turn_id=turn_id, owner=owner, tries=found.tries + 1)
    return Plan(tuple(to_session(found.session_id, [asked])), True)


def made(found: Titling, outcome: TitleMade, *, named: bool) -> Plan[bool]:
    """Whether the session has the title now. What it cost counts in any case."""
    if not named and found.state in (titles.DUE, titles.ASKED) and found.tries == outcome.tries:
        changed: list[Event] = [SessionChanged(title=outcome.title)] if outcome.title is not None else []
        return Plan(tuple(to_session(found.session_id, [outcome, *changed])), bool(changed))
    if outcome.usage is None:
        return Plan((), False)
    late = msgspec.structs.replace(outcome, title=None, problem=titles.NAMED_FIRST)
    return Plan(tuple(to_session(found.session_id, [late])), False)
