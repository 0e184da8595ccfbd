"""Asking a model for the title of a session: recorded before it is asked, and what came of it after (P6: a title starts nothing)."""

import msgspec

from holdfast.core import titles
from holdfast.core.events import Event, SessionChanged, TitleAsked, TitleMade
from holdfast.core.plans import Plan, to_session
from holdfast.core.titles import Titling


def ask(found: Titling, *, expected: Titling, turn_id: str, owner: int) -> Plan[bool]:
    """Whether the model may be asked. It may not if this is no longer as the caller saw it: another process was faster, or somebody has
    named the session.
    """
    if found != expected:
        return Plan((), False)
    asked = TitleAsked(turn_id=turn_id, owner=owner, tries=found.tries + 1)
    return Plan(tuple(to_session(found.session_id, [asked])), True)


def made(found: Titling, outcome: TitleMade) -> Plan[bool]:
    """Whether the session has the title now. What it cost counts in any case."""
    if found.state in (titles.DUE, titles.ASKED) and found.tries == outcome.tries:
        named: list[Event] = [SessionChanged(title=outcome.title)] if outcome.title is not None else []
        return Plan(tuple(to_session(found.session_id, [outcome, *named])), bool(named))
    if outcome.usage is None:
        return Plan((), False)
    late = msgspec.structs.replace(outcome, title=None, problem=titles.NAMED_FIRST)
    return Plan(tuple(to_session(found.session_id, [late])), False)
