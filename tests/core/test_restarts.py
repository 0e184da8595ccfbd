"""Who is told of a stop or a restart: every combination of who asked, what happens, what runs and which home channels there are."""

from itertools import combinations, product
from pathlib import Path
from typing import TypeVar

import pytest

from holdfast.config import BadConfig, load
from holdfast.core import restarts
from holdfast.core.restarts import By, Chat, Request, Running, What
from tests import words

T = TypeVar("T")
ASKER = Chat(session_key="agent:main:talk:dm:boss:7", session_id="s_boss", anchor="command@7")
GROUP = "agent:main:talk:group:crew"
HOME = "agent:main:talk:channel:home"


def turn(session_key: str, name: str) -> Running:
    return Running(session_key=session_key, session_id=f"s_{name}", anchor=f"question of {name}", turn_id=f"t_{name}", attempt=2)


TURNS = (
    turn("agent:main:talk:dm:ann", "ann"),
    turn(f"{GROUP}::bob", "bob"),
    turn(f"{GROUP}::eve", "eve"),
    turn(HOME, "home"),
    turn(ASKER.session_key, "boss"),
    turn("agent:main:web:page:p1", "page"),
)
HOMES = (HOME, GROUP, ASKER.session_key)


def some(of: tuple[T, ...]) -> list[tuple[T, ...]]:
    return [chosen for size in range(len(of) + 1) for chosen in combinations(of, size)]


def asked(by: By, homes: tuple[str, ...]) -> Request:
    return restarts.request("r1", by, chat=ASKER if by is By.CHAT else None, homes=homes)


@pytest.mark.parametrize("by", By)
@pytest.mark.parametrize("what", What)
def test_before_it_every_place_is_told_once_and_nobody_else(by: By, what: What) -> None:
    """C10, C11, C12"""
    for running, homes, window_s in product(some(TURNS), some(HOMES), (0.0, 30.0)):
        planned = restarts.before(what, [asked(by, homes)], running, window_s=window_s)
        told = [restarts.place(notice.session_key) for notice in planned]
        expected = set() if what is What.HAND_OVER else {one.place for one in running}
        if what is not What.HAND_OVER and by in (By.OPERATOR, By.SERVICE):
            expected |= {restarts.place(home) for home in homes}
        if by is By.CHAT:
            expected -= {ASKER.place}
        assert len(told) == len(set(told)) and set(told) == expected, (running, homes)


@pytest.mark.parametrize("what", (What.STOP, What.RESTART))
@pytest.mark.parametrize("window_s", (0.0, 30.0))
def test_who_loses_a_turn_is_told_as_a_reply_to_what_they_asked_and_promised_no_more_than_a_try(what: What, window_s: float) -> None:
    """C10"""
    for notice, lost in zip(restarts.before(what, [], TURNS[:2], window_s=window_s), TURNS[:2], strict=True):
        assert (notice.session_id, notice.anchor) == (lost.session_id, lost.anchor)
        assert notice.id == f"cut.{lost.turn_id}.2"
        assert ("restarting" in notice.text) == ("try to resume" in notice.text) == (what is What.RESTART)
        assert ("shutting down" in notice.text) == (what is What.STOP)
        assert ("within 30 s" in notice.text) == bool(window_s)
        assert "will resume" not in notice.text


def test_a_home_channel_that_loses_a_turn_hears_of_that_and_not_twice() -> None:
    """C10, C11"""
    (notice,) = restarts.before(What.RESTART, [asked(By.OPERATOR, (HOME,))], [turn(HOME, "home")])
    assert notice.text == words.RESTARTING_INTERRUPTS and notice.anchor == "question of home"


def test_people_with_lanes_of_their_own_in_one_group_read_one_notice() -> None:
    """C10"""
    (notice,) = restarts.before(What.STOP, [asked(By.SERVICE, (GROUP,))], TURNS[1:3])
    assert notice.session_id == "s_bob"


@pytest.mark.parametrize("what", What)
@pytest.mark.parametrize("running", some(TURNS))
def test_the_answer_to_the_command_says_what_it_costs_the_chat_that_asked(what: What, running: tuple[Running, ...]) -> None:
    """C11, C12: it takes the place of the notice that this chat would get."""
    costs = what is not What.HAND_OVER and any(one.session_id == "s_boss" for one in running)
    assert restarts.reply(what, ASKER, running) == (words.RESTARTING_INTERRUPTS if costs else words.RESTARTING)


@pytest.mark.parametrize(("by", "homes"), list(product(By, some(HOMES))))
def test_afterwards_the_chat_that_asked_is_told_or_else_the_home_channels(by: By, homes: tuple[str, ...]) -> None:
    """C11, C12, C13"""
    assert [notice for notice in restarts.after([asked(by, homes)]) if notice.session_id is None] == [], "nobody heard it go"
    request = asked(by, homes)
    told = restarts.after([restarts.heard(request, restarts.before(What.RESTART, [request], []))])
    if by is By.CHAT:
        (notice,) = told
        assert (notice.session_key, notice.session_id, notice.anchor) == (ASKER.session_key, ASKER.session_id, ASKER.anchor)
    else:
        assert [notice.session_key for notice in told] == (list(homes) if by in (By.OPERATOR, By.SERVICE) else [])
        assert all(notice.anchor is None for notice in told)
    assert {notice.text for notice in told} <= {words.BACK}


def test_one_restart_that_several_asked_for_is_told_to_each_of_them_once() -> None:
    """C11, C13"""
    again = Request(id="r2", by=By.CHAT, chat=Chat(session_key=ASKER.session_key, session_id="s_boss", anchor="again@7"))
    from_line = restarts.request("r3", By.OPERATOR, homes=(HOME, ASKER.session_key))
    from_line = restarts.heard(from_line, restarts.before(What.RESTART, [from_line], []))
    assert from_line.heard == (HOME, ASKER.session_key)
    told = restarts.after([from_line, asked(By.CHAT, ()), again])
    assert [(notice.session_key, notice.anchor) for notice in told] == [(ASKER.session_key, ASKER.anchor), (HOME, None)]


@pytest.mark.parametrize(("by", "homes"), list(product(By, some(HOMES))))
def test_that_it_failed_is_told_to_the_chat_that_asked_alone(by: By, homes: tuple[str, ...]) -> None:
    """C11: whoever asked elsewhere has the answer there."""
    told = restarts.failed(asked(by, homes), "No room.")
    assert [(notice.session_id, notice.anchor) for notice in told] == ([("s_boss", ASKER.anchor)] if by is By.CHAT else [])
    assert all("No room." in notice.text for notice in told)


def test_a_request_has_one_outcome() -> None:
    """C11: killed between the telling and the note, the next process cannot tell another one."""
    one = asked(By.CHAT, ())
    assert restarts.after([one])[0].id == restarts.failed(one, "why")[0].id


# the setting


def test_home_channels_are_session_keys_in_the_file_or_with_commas_in_the_variable(tmp_path: Path) -> None:
    """C13"""
    (tmp_path / "config.toml").write_text(f'home_channels = ["{HOME}"]\n')
    assert load({}, home=str(tmp_path)).home_channels == (HOME,)
    assert load({"HOLDFAST_HOME_CHANNELS": f"{HOME}, {GROUP}"}, home=str(tmp_path)).home_channels == (HOME, GROUP)


def test_a_home_channel_that_is_no_session_key_is_refused(tmp_path: Path) -> None:
    """C13"""
    with pytest.raises(BadConfig, match="Invalid home_channels: 'telegram:1' is not a session key"):
        load({"HOLDFAST_HOME_CHANNELS": "telegram:1"}, home=str(tmp_path))
