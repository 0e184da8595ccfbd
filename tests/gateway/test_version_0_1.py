"""Chats that version 0.1 served until its process died: what was owed is sent once, and everybody is answered."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.delivery import key
from holdfast.core.places import place
from holdfast.core.rich import Rich
from holdfast.ports.platforms import Outgoing
from holdfast.store.sqlite.connection import connect, migrate
from holdfast.store.sqlite.tx import rebuild
from tests.gateway.gateways import Home, Life, home
from tests.homes import CHATS, unpack


@pytest.fixture
def taken_over(tmp_path: Path) -> Iterator[Home]:
    """The home that version 0.1 left, and the chat as it stood then."""
    with home(tmp_path) as made:
        made.start().die()  # The name of the first life is the one that died with version 0.1.
        shown = unpack(CHATS, tmp_path)
        db = connect(made.path)
        migrate(db, rebuild)
        db.close()
        for delivery_id, session_key, text, anchor in shown.sent:
            made.server.put(Outgoing(place=place(session_key, anchor), key=key(delivery_id), text=Rich(text)))
        made.later(300)
        yield made


def settled(taken_over: Home) -> Life:
    life = taken_over.start()
    for chat in ("ann", "bob", "dan", "eve"):
        life.rest(chat)
    return life


def test_a_reply_on_its_way_is_found_and_the_one_behind_it_is_sent_once(taken_over: Home) -> None:
    """P4, B4: the process died between a send and its receipt."""
    settled(taken_over)
    assert taken_over.told("bob") == ["on its way", "behind it"]


def test_a_turn_in_mid_tool_is_resumed_and_answered_in_its_chat(taken_over: Home) -> None:
    """P3, P4, P5: the call that had finished keeps its result, the one at work is not run again."""
    life = settled(taken_over)
    assert taken_over.done == []
    assert taken_over.replies("ann") == ["hello ann", "half and done"]
    (answer,) = [message for message in life.transcript("ann").messages if message.text == "half and done"]
    assert [call.outcome for call in answer.tool_calls] == ["done", "unknown"]


def test_a_message_behind_an_interrupted_turn_is_answered_after_it(taken_over: Home) -> None:
    """P1, P3"""
    settled(taken_over)
    assert taken_over.replies("dan") == ["slow and steady", "and then?"]


def test_a_question_is_not_put_again_and_its_answer_continues_the_turn(taken_over: Home) -> None:
    """R5, P6"""
    life = settled(taken_over)
    assert taken_over.told("cid") == ["Which one?"]
    life.say("the left one", chat="cid")
    assert taken_over.told("cid") == ["Which one?", "told the left one"]


def test_chats_at_rest_stay_silent(taken_over: Home) -> None:
    """E5, P6: also the conversation that was left for a new one."""
    before = taken_over.told("eve")
    life = settled(taken_over)
    life.pass_s(60)
    assert taken_over.told("eve") == before
