"""What an approval is bound to, and what people and agents read of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import approvals
from holdfast.core.approvals import Approval, Clearance
from holdfast.core.policy import Decision, Pattern, Verdict

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
arguments = st.dictionaries(st.text(max_size=5), values, max_size=4)


@given(arguments, st.randoms())
def test_the_order_of_arguments_makes_no_difference(found: dict[str, Any], random: Any) -> None:
    names = list(found)
    random.shuffle(names)
    assert approvals.fingerprint("t", {name: found[name] for name in names}, "p") == approvals.fingerprint("t", found, "p")


@given(arguments, arguments)
def test_other_arguments_another_tool_or_another_place_make_one(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert (approvals.fingerprint("t", one, "p") == approvals.fingerprint("t", two, "p")) == (repr_of(one) == repr_of(two))
    assert len({approvals.fingerprint(*given) for given in (("t", one, "p"), ("u", one, "p"), ("t", one, "q"), ("t", one, ""))}) == 4


def repr_of(found: Any) -> Any:
    """Equal only if the JSON is: Python takes True for 1."""
    return sorted((name, repr(value)) for name, value in found.items())


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"command": "git push"}, "git push"),
        ({"command": "a", "timeout": 5}, '"timeout": 5'),
        ({"path": "a.md", "text": "line\nline"}, "line\\nline"),
        ({}, "{}"),
    ],
)
def test_a_call_is_shown_whole_with_its_place(arguments: dict[str, Any], shown: str) -> None:
    words = approvals.question("tool", arguments, "/work, no sandbox")
    assert shown in words and "`tool` in /work, no sandbox" in words


@given(st.text(alphabet="`a\n ", max_size=12))
def test_nothing_in_a_call_ends_the_block_that_shows_it(line: str) -> None:
    words = approvals.question("terminal", {"command": line}, "")
    fence = words.rpartition("\n")[2]
    assert set(fence) == {"`"} and len(fence) >= 3
    assert words == f"May I run `terminal`?\n\n{fence}\n{line}\n{fence}" and fence not in line


def said(verdict: str, fingerprint: str | None = "f", **more: Any) -> Approval:
    return Approval(question_id="q", verdict=verdict, fingerprint=fingerprint, **more)


ALLOW, ASK, DENY = (Decision(verdict=verdict, reason="The rule x denies it.", offer=Pattern("x")) for verdict in Verdict)
WHY = said("deny", by="ann", reason="use the other branch")
CLEARED = [
    (ALLOW, None, Clearance(place="p")),
    (ASK, None, Clearance(place="p", asks=True, offer=Pattern("x"))),
    (DENY, None, Clearance(place="p", refused="It was not run. The rule x denies it.")),
    *((decision, said("approve"), Clearance(place="p", approval="q")) for decision in (ALLOW, ASK)),
    (DENY, said("approve"), Clearance(place="p", refused="It was not run. The rule x denies it.")),
    *(
        (decision, said("approve", other), Clearance(place="p", asks=True, offer=Pattern("x")))
        for decision in (ASK,)
        for other in ("g", None)
    ),
    (ALLOW, said("approve", "g"), Clearance(place="p")),
    *((each, said("deny"), Clearance(place="p", refused="The user denied it, so it was not run.")) for each in (ALLOW, ASK)),
    (ASK, WHY, Clearance(place="p", refused="ann denied it, so it was not run. The reason: use the other branch")),
    (ASK, said("unreadable", None), Clearance(place="p", refused=approvals.DAMAGED)),
]


@pytest.mark.parametrize(("decision", "given", "cleared"), CLEARED)
def test_what_is_configured_and_what_was_said_decide_together(decision: Decision, given: Approval | None, cleared: Clearance) -> None:
    """P5: a denial tells the agent who and why; a yes to something else is none."""
    assert approvals.clear(decision, given, made="f", place="p") == cleared
