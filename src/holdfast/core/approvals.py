"""Approvals: a question about one very call. What it is bound to, what people are told, and what their word leads to."""

import hashlib
import json
from typing import Any

import msgspec

from holdfast.core.content import Content, digest
from holdfast.core.events import QuestionAnswered
from holdfast.core.policy import Decision, Pattern, Verdict
from holdfast.core.texts import visible

FORM = "approval"
APPROVE, DENY, UNREADABLE = "approve", "deny", "unreadable"
ONCE, SESSION = "once", "session"
# A call that is shown by one of its arguments alone, if it has no other.
_TELLING = ("command", "path", "url")
MARKED = "It was not run: its arguments hold a mark in the place of a secret. Holdfast keeps no secret, so nobody can run it any more."
SECRET = (
    "It was not run: it needs an approval, and its arguments hold a secret, which is not recorded, so nobody can be shown what to approve."
)
OTHERS = "It changes what other people's conversations are given, so only an administrator can approve it."
DAMAGED = "Its approval was answered, but the record is damaged and cannot be read. It was not run."


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that no call has used yet. `verdict`: approve, deny, or unreadable, where its record is damaged. `fingerprint`: of the call
    that was shown. `reason`: of a denial; `scope`: of an approval.
    """

    question_id: str
    verdict: str
    fingerprint: str | None
    by: str | None = None
    reason: str | None = None
    scope: str | None = None


class Clearance(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a call that is about to start. `asks`: a person has to approve it, and may allow what is in `offer` from now on;
    only an operator, where it concerns others (`for_operators`).
    `refused`: it does not run, and this is its result. Otherwise it starts, with the `approval` that allowed it, if it needed one. `place`:
    where it works.
    """

    place: str
    asks: bool = False
    for_operators: bool = False
    offer: Pattern | None = None
    refused: str | None = None
    approval: str | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody allowed for a conversation."""

    rule_id: str
    session_id: str
    pattern: str
    by: str
    at: int


def fingerprint(tool: str, arguments: dict[str, Any], place: str) -> str:
    """Of a call as it is recorded, and of where it would work. The order of its arguments does not matter; anything else does."""
    text = json.dumps([tool, arguments, place], ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def given(answered: QuestionAnswered, fingerprint: str | None) -> Approval:
    """What an answer says. `fingerprint`: of the call that was shown, None where that is not known any more."""
    return Approval(
        question_id=answered.question_id,
        verdict=answered.verdict or UNREADABLE,
        fingerprint=fingerprint,
        by=answered.by,
        reason=answered.reason,
        scope=answered.scope,
    )


def clear(decision: Decision, said: Approval | None, *, made: str | None, place: str) -> Clearance:
    """`said`: what a person said about this call; `made`: the call's fingerprint now. The configuration's no counts more than a person's
    yes, and a person's no more than a rule's yes. A yes to something else is none: the person is asked again.
    """
    if decision.verdict is Verdict.DENY:
        return Clearance(place=place, refused=f"It was not run. {decision.reason}")
    if said is not None and said.verdict != APPROVE:
        return Clearance(place=place, refused=_denied(said))
    if said is not None and said.fingerprint == made:
        return Clearance(place=place, approval=said.question_id)
    if decision.verdict is Verdict.ALLOW:
        return Clearance(place=place)
    return Clearance(place=place, asks=True, offer=decision.offer)


def question(tool: str, arguments: dict[str, Any], place: str, *, for_operators: bool = False) -> str:
    """The call, whole, as people are asked about it, with hidden characters written out. What runs is the call as it is recorded."""
    telling = [name for name in _TELLING if isinstance(arguments.get(name), str)]
    if len(arguments) == 1 and telling:
        shown = arguments[telling[0]]
    else:
        shown = json.dumps(arguments, ensure_ascii=False, indent=2)
    fence = "`" * (max((len(run) for run in _backticks(shown)), default=0) + 1)
    fence = fence if len(fence) > 2 else "```"
    where = f" in {place}" if place else ""
    who = f" {OTHERS}" if for_operators else ""
    return visible(f"May I run `{tool}`{where}?{who}\n\n{fence}\n{shown}\n{fence}")


def _backticks(text: str) -> list[str]:
    return [run for run in "".join(letter if letter == "`" else " " for letter in text).split(" ") if run]


def answered(verdict: str, *, pattern: str | None = None, reason: str = "") -> str:
    """What a conversation shows of an answer. `pattern`: what is allowed from now on."""
    if verdict == DENY:
        return f"Denied: {reason}" if reason else "Denied."
    return f"Approved, and from now on in this conversation: {pattern}" if pattern else "Approved."


def _denied(approval: Approval) -> str:
    """The result of a call that a person denied. Both people and agents read it."""
    if approval.verdict != DENY:
        return DAMAGED
    told = f"{approval.by or 'The user'} denied it, so it was not run."
    return f"{told} The reason: {approval.reason}" if approval.reason else told


def known_by(content: Content, verdict: str | None, scope: str | None) -> bytes:
    """By which the same answer is known again. Of an approval, verdict and scope are part of it."""
    return digest(content) if verdict is None else digest(f"{verdict} {scope} {content}")
