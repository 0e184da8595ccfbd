"""Busy policies: which one counts for a chat, and when a conversation is busy."""

import pytest

from holdfast.core import busy
from holdfast.core.busy import Mode
from holdfast.core.errors import BadInput
from holdfast.core.turns import OPEN, TurnState
from tests.core.plans.values import STATES, session

GROUP, DM, PAGE = "agent:main:chat:group:7::ann", "agent:main:chat:dm:1", "agent:main:web:page:s1"


def test_the_names_of_the_modes_keep_their_spelling() -> None:
    assert [str(mode) for mode in Mode] == ["queue", "steer", "interrupt", "reject"]
    assert busy.mode(" steer ") is Mode.STEER


@pytest.mark.parametrize("text", ["", "Queue", "shout", "queue, steer"])
def test_what_is_no_mode_is_refused_with_the_list(text: str) -> None:
    with pytest.raises(BadInput, match="Use queue, steer, interrupt or reject"):
        busy.mode(text)


def test_a_pattern_that_matches_no_key_is_refused() -> None:
    with pytest.raises(BadInput, match="matches no session key"):
        busy.policies({"telegram:group:*": "steer"})


@pytest.mark.parametrize(
    ("table", "group", "dm", "page"),
    [
        ({}, "queue", "queue", "queue"),
        ({"default": "steer"}, "steer", "steer", "steer"),
        ({"default": "steer", "chat": "reject"}, "reject", "reject", "steer"),
        ({"default": "steer", "chat": "reject", "chat.group": "interrupt"}, "interrupt", "reject", "steer"),
        ({"chat.group": "reject", "agent:*:chat:group:7*": "steer"}, "steer", "queue", "queue"),
        ({"agent:*": "reject", "agent:main:chat:*": "steer", "agent:main:chat:dm:1": "interrupt"}, "steer", "interrupt", "reject"),
        ({"agent:main:chat:group:77*": "steer", "agent:other:*": "steer"}, "queue", "queue", "queue"),
    ],
)
def test_the_most_exact_policy_counts(table: dict[str, str], group: str, dm: str, page: str) -> None:
    found = busy.policies(table)
    assert [busy.mode_for(found, key) for key in (GROUP, DM, PAGE)] == [group, dm, page]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("queued", [0, 1])
def test_a_conversation_is_busy_while_a_turn_is_open_or_a_message_waits(state: TurnState, left: bool, queued: int) -> None:
    """A23: a turn that was interrupted and left continues from the next message."""
    of = session(state, left=left, queued=queued)
    at_work = state in OPEN and not (left and state is TurnState.INTERRUPTED)
    assert busy.at_work(of) is at_work
    assert busy.is_busy(of) is (at_work or queued == 1)
