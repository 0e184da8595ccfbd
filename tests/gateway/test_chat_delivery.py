"""How what is owed to chats gets there: in pieces, in order, within the budget, and what happens where a chat, a thread or a message is
gone.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from holdfast.api import operations
from holdfast.core import content
from holdfast.core.capabilities import Rates
from holdfast.core.chat_errors import MessageGone
from holdfast.core.content import TextPart, bytes_part
from holdfast.core.delivery import REPEAT_LABEL, NotOver
from holdfast.core.errors import Refused, Unavailable
from holdfast.core.places import Spot
from holdfast.core.rich import Rich
from holdfast.ports.blobs import Blob
from holdfast.ports.platforms import Outgoing, Receipt
from tests.fakes.loop import Crash
from tests.fakes.platform import NAME, UNHURRIED, Shelf
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life, Line

BOB = "bob"
LONG = "say:" + " ".join(f"word{number}" for number in range(60))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def can(home: Home, **changes: object) -> None:
    home.server.capabilities = msgspec.structs.replace(home.server.capabilities, **changes)


def said(home: Home) -> str:
    return " ".join(home.replies()[1:])


def _all_said(home: Home) -> bool:
    return said(home) == LONG.removeprefix("say:")


def test_a_long_answer_is_sent_in_pieces_of_which_each_is_sent_once(home: Home) -> None:
    """P4"""
    can(home, text_limit=100)
    life = home.start()
    life.say(LONG)
    assert len(home.told()) > 4 and all(len(text) <= 100 for text in home.told())
    assert " ".join(home.told()) == LONG.removeprefix("say:")
    assert home.replies() == home.told()


def test_killed_between_two_pieces_only_the_rest_is_sent(tmp_path: Path) -> None:
    """P4, LESSONS: part 1 of a split reply sent, part 2 not."""
    for moment in ("before", "after"):
        for commit in range(1, 24):
            folder = tmp_path / f"{moment}-{commit}"
            folder.mkdir()
            with gateways.home(folder) as home:
                can(home, text_limit=150)
                life = home.start()
                life.say("hello")
                life.commits, life.dies = 0, (moment, commit)
                home.write(LONG)
                try:
                    life.until(partial(_all_said, home))
                except Crash:
                    life = home.start()
                    life.until(partial(_all_said, home))
                life.rest()
                assert said(home) == LONG.removeprefix("say:")


def test_order_is_kept_within_a_chat_and_nothing_waits_across_chats(home: Home) -> None:
    life = home.start()
    home.server.takes_s = 5.0
    life.write("say:one")
    life.write("say:two")
    life.write("say:three", chat=BOB)
    began = life.loop.time()
    life.until(lambda: home.told(BOB) == ["three"])
    assert life.loop.time() - began < 8
    life.rest()
    assert home.told() == ["one", "two"]


def test_a_chat_that_began_a_new_conversation_is_answered_in_order_though_the_clock_was_set_back(home: Home) -> None:
    """P4: what the conversation before still owes comes first."""
    home.server.moods = lambda: "refused"
    life = home.start(jumps=[(2.0, -3600_000)])
    life.write("say:one")
    life.until(lambda: home.logged("send failed"))
    life.pass_s(3)
    life.write("/new")
    life.write("say:two")
    life.until(lambda: len(life.do(life.store.owed(limit=10, given_up=True))) == 3)
    home.server.moods = lambda: ""
    life.rest()
    assert [home.told()[0], home.told()[-1]] == ["one", "two"]
    assert len(home.told()) == 3


def test_a_flood_is_sent_within_the_budget_and_in_order(home: Home) -> None:
    """One message a second in a chat, after a few at once."""
    can(home, rates=Rates(every_s=(1.0, 3.0), burst=2, account_per_s=100.0, account_burst=100, kept=0))
    life = home.start()
    for number in range(8):
        home.write(f"say:{number}")
    began = life.loop.time()
    life.until(lambda: len(home.told()) == 8)
    assert home.told() == [str(number) for number in range(8)]
    assert 5 <= life.loop.time() - began <= 9


def test_what_is_owed_to_very_many_chats_goes_out_at_the_pace_of_the_account_and_not_in_one_burst(home: Home) -> None:
    """P4: an account that sends faster than its platform allows is refused everywhere."""
    can(home, rates=Rates(every_s=(1.0, 1.0), burst=3, account_per_s=10.0, account_burst=5, kept=0))
    home.server.moods = lambda: "refused"
    life = home.start()
    chats = [f"chat{number}" for number in range(40)]
    for chat in chats:
        life.write("say:hello", chat=chat)
    life.die()
    home.later(60)
    home.server.moods = lambda: ""
    life = home.start()
    life.until(lambda: home.server.sent)
    life.pass_s(1)
    assert 10 <= len(home.server.sent) <= 5 + 10 + 1
    life.until(lambda: all(home.told(chat) == ["hello"] for chat in chats), within_s=5)


def test_a_time_to_wait_that_the_platform_named_is_kept_also_by_the_next_process(home: Home) -> None:
    """P4: retry-after is stored with what it is for."""
    home.server.moods = lambda: "limited"
    life = home.start()
    life.write("say:hello")
    life.until(lambda: home.logged("send failed"))
    [row] = life.do(life.store.owed(limit=10, given_up=True))
    assert row.retry_at - life.clock.now() in range(1000, 2001)
    life.die()
    home.server.moods = lambda: ""
    life = home.start()
    life.pass_s(0.8)
    assert home.told() == []
    life.until(lambda: home.told() == ["hello"], within_s=3)


def test_an_account_that_is_told_to_be_quiet_sends_nothing_anywhere_also_in_the_next_process(home: Home) -> None:
    home.server.moods = lambda: "limited account"
    life = home.start()
    life.write("say:hello")
    life.until(lambda: home.logged("send failed"))
    life.die()
    home.server.moods = lambda: ""
    life = home.start()
    life.write("say:hi", chat=BOB)
    life.pass_s(5)
    assert home.server.sent == []
    life.until(lambda: home.told(BOB) == ["hi"] and home.told() == ["hello"], within_s=20)


def test_what_is_a_day_old_when_it_is_sent_says_so(home: Home) -> None:
    """Nothing old is sent without a mark."""
    home.server.moods = lambda: "refused"
    life = home.start()
    life.write("say:hello")
    life.until(lambda: home.logged("send failed"))
    life.die()
    home.later(26 * 3600)
    home.server.moods = lambda: ""
    life = home.start()
    life.rest()
    assert home.told() == ["(delayed by 1 d 2 h) hello"]


def test_a_chat_that_is_gone_is_remembered_and_shown_and_comes_back_with_its_first_word(home: Home) -> None:
    home.server.gone.add(ANN)
    life = home.start()
    life.write("say:hello")
    life.until(lambda: life.gateway.links[NAME].closed)
    life.die()
    life = home.start()
    [dead] = life.do(life.store.dead_places())
    assert (dead.spot, dead.why) == (Spot(NAME, ANN), "The chat is gone.")
    [row] = life.do(life.store.owed(limit=10, given_up=True))
    assert (row.state, row.error) == ("dead", "The chat is gone.")
    home.server.gone.clear()
    life.say("say:again")
    assert home.told() == ["again"] and not life.do(life.store.dead_places())


def test_a_thread_that_is_gone_leaves_its_chat_which_is_told_so(home: Home) -> None:
    """C11: permission to fall back."""
    home.server.gone_threads.add("7")
    life = home.start()
    home.server.write(ANN, ANN, "say:hello", thread="7", topic="news")
    life.until(lambda: len(home.server.sent) == 1)
    [sent] = home.server.sent
    assert (sent.text, sent.thread, sent.topic) == ("(The topic of this conversation is gone.) hello", None, None)


def test_a_message_that_is_gone_takes_no_reply_and_the_answer_comes_all_the_same(home: Home) -> None:
    """P4"""
    life = home.start()
    update = home.write("sleep:2|say:hello")
    life.until(lambda: home.texts)
    home.server.delete(update)
    life.rest()
    [sent] = home.server.sent
    assert (sent.text, sent.reply_to) == ("hello", None)


def test_an_echo_of_our_own_message_settles_what_nobody_knew(home: Home) -> None:
    """P4: the platform brings it back through intake, before it is dropped there."""
    can(home, finds=False, echoes_s=30.0)
    home.server.moods = lambda: "cut"
    life = home.start()
    home.write("say:hello")
    life.until(lambda: len(home.server.sent) == 1)
    home.server.moods = lambda: ""
    life.rest()
    assert home.told() == ["hello"]
    assert len(home.heard) == 1


def test_where_no_echo_comes_in_its_time_the_text_is_sent_once_more_with_a_label(home: Home) -> None:
    """P4"""
    can(home, finds=False, echoes_s=30.0)
    home.server.moods = lambda: "lost"
    life = home.start()
    home.write("say:hello")
    life.until(lambda: home.logged("send failed"))
    home.server.moods = lambda: ""
    life.pass_s(20)
    assert home.server.sent == []
    life.until(lambda: home.told() == [f"{REPEAT_LABEL}hello"])


def in_doubt(home: Home, text: str = "say:hello", *, mood: str = "cut") -> Life:
    """A send whose connection breaks, on a platform that can be asked what arrived and, where `hides` is set, cannot tell."""
    life = home.start()
    life.say("say:hi")
    home.server.moods = lambda: mood
    home.write(text)
    life.until(lambda: home.logged("send failed"))
    home.server.moods = lambda: ""
    return life


def test_where_the_platform_can_never_tell_whether_a_text_arrived_it_is_sent_once_more_with_a_label(home: Home) -> None:
    """P4: never silently doubled, and what comes next does not wait for an answer that never comes."""
    home.server.hides = Refused("The thread is too long.")
    life = in_doubt(home)
    home.write("say:next")
    life.until(lambda: home.told() == ["hi", "hello", f"{REPEAT_LABEL}hello", "next"], within_s=30)


def test_where_lookups_fail_again_and_again_they_end_and_the_text_is_sent_once_more_with_a_label(home: Home) -> None:
    """P4: more and more rarely for five minutes, also over a death of the process."""
    home.server.hides = Unavailable("Not now.")
    life = in_doubt(home)
    home.write("say:next")
    life.pass_s(100)
    life.die()
    life = home.start()
    life.pass_s(100)
    assert home.told() == ["hi", "hello"]
    life.until(lambda: home.told() == ["hi", "hello", f"{REPEAT_LABEL}hello", "next"], within_s=600)
    assert home.server.lookups < 25


def test_a_lookup_that_works_again_in_time_settles_the_doubt_without_a_label(home: Home) -> None:
    """P4"""
    home.server.hides = Unavailable("Not now.")
    life = in_doubt(home)
    life.pass_s(100)
    home.server.hides = None
    life.rest()
    assert home.told() == ["hi", "hello"]


def test_a_doubt_is_settled_by_the_platform_though_the_clock_was_set_back_while_nobody_looked(home: Home) -> None:
    """P4: the stored time to ask again lies days ahead by then."""
    home.server.hides = Unavailable("Not now.")
    life = in_doubt(home)
    life.die()
    home.server.hides = None
    life = home.start(jump_ms=-2 * 24 * 3600 * 1000)
    life.rest()
    assert home.told() == ["hi", "hello"]


def test_a_doubt_about_a_chat_that_is_gone_is_given_up_and_shown(home: Home) -> None:
    """P4: the bot was removed while nobody was there to see whether the text had arrived."""
    home.server.hides = Unavailable("Not now.")
    life = in_doubt(home)
    life.die()
    home.server.hides = None
    home.server.gone.add(ANN)
    life = home.start()
    life.until(lambda: life.gateway.links[NAME].closed)
    life.until(
        lambda: [(row.state, row.error) for row in life.do(life.store.owed(limit=10, given_up=True))] == [("dead", "The chat is gone.")]
    )
    home.server.gone.clear()
    life.say("say:again")
    assert home.told() == ["hi", "hello", "again"]


def test_a_key_that_the_platform_still_knows_makes_a_repeat_harmless(home: Home) -> None:
    """P4"""
    can(home, finds=False, key_lasts_s=120.0)
    home.server.moods = lambda: "cut"
    life = home.start()
    home.write("say:hello")
    life.until(lambda: home.logged("send failed"))
    home.server.moods = lambda: ""
    life.rest()
    assert home.told() == ["hello"]


class Clumsy(Line):
    """A connection that fails for a reason of its own while `broken`."""

    broken = True
    asked = 0

    def size(self, text: Rich) -> int:
        if text.text.startswith("hello"):
            Clumsy.asked += 1
            if Clumsy.broken:
                raise RuntimeError("a bug")
        return super().size(text)


def test_a_reply_that_meets_a_bug_is_kept_and_tried_ever_more_rarely(home: Home) -> None:
    """P4, P8: nothing turns without a pause, and others are served."""
    Clumsy.asked, Clumsy.broken, home.line = 0, True, Clumsy
    life = home.start()
    home.write("say:hello")
    home.write("say:other", chat="bob", sender="bob")
    life.until(lambda: home.told("bob") == ["other"])
    life.pass_s(60)
    assert 3 <= Clumsy.asked < 10
    for entry in home.logged("task failed"):
        home.logs.remove(entry)
    Clumsy.broken = False
    life.until(lambda: home.told() == ["hello"])


class Torn(Shelf):
    """A disk that does not give its bytes while `broken`."""

    broken = True
    asked = 0

    async def read(self, digest: str) -> bytes:
        Torn.asked += 1
        if Torn.broken:
            raise OSError(5, "Input/output error")
        return await super().read(digest)


def test_a_file_that_cannot_be_read_now_is_shown_as_owed_and_sent_later(home: Home) -> None:
    """P4, P8"""
    Torn.asked, Torn.broken, home.shelf = 0, True, Torn
    life = home.start()
    life.say("say:hi")
    picture = bytes_part(blob="a" * 64, size=5, media_type="image/png", name="cat.png")
    life.do(life.store.put_blob(Blob(digest=picture.blob, size=5, media_type="image/png", file=f"{picture.blob}-1"), at=1))
    notice = content.of([TextPart("A cat."), picture])
    life.do(life.store.tell_once(life.session().session_id, notice_id="n", content=notice, anchor=None, at=life.clock.now()))
    life.pass_s(60)
    assert 3 <= Torn.asked < 10
    [owed] = life.do(life.store.owed(limit=10, given_up=True))
    assert owed.state == "pending" and "Input/output error" in str(owed.error)
    Torn.broken = False
    life.until(lambda: home.server.sent[-1].file is not None)


class Large(Shelf):
    async def read(self, digest: str) -> bytes:
        return bytes(10_000_000)


def test_a_large_file_has_the_time_that_a_slow_connection_takes_for_it(home: Home) -> None:
    """P4: it is not sent again and again, each time in vain."""
    home.shelf = Large
    life = home.start()
    life.say("say:hi")
    picture = bytes_part(blob="a" * 64, size=10_000_000, media_type="image/png", name="cat.png")
    life.do(life.store.put_blob(Blob(digest=picture.blob, size=picture.size, media_type="image/png", file=f"{picture.blob}-1"), at=1))
    home.server.takes_s = 200.0
    notice = content.of([picture])
    life.do(life.store.tell_once(life.session().session_id, notice_id="n", content=notice, anchor=None, at=life.clock.now()))
    life.until(lambda: life.do(life.store.owed(limit=10, given_up=True)) == [], within_s=1000)
    assert [sent.file is not None for sent in home.server.sent] == [False, True]
    assert not home.logged("send failed")


class Contrary(Line):
    """Says of a message it is to send that the message is gone, as no platform should."""

    async def send(self, message: Outgoing) -> Receipt:
        if message.text.text.startswith(REPEAT_LABEL):
            raise MessageGone("It is gone.")
        return await super().send(message)


def test_a_platform_that_calls_a_new_message_gone_has_refused_it(home: Home) -> None:
    """P4: it is given up, visibly, and what comes next is sent."""
    home.line = Contrary
    can(home, finds=False)
    life = in_doubt(home)
    home.write("say:next")
    life.until(lambda: home.told()[-1] == "next")
    [dead] = life.do(life.store.owed(limit=10, given_up=True))
    assert dead.state == "dead" and not home.logged("task failed")


def test_a_text_with_stray_marks_arrives_as_it_was_said(home: Home) -> None:
    life = home.start()
    life.say("say:2*3 = 6, snake_case, [x](, **open and `tick")
    assert home.told() == ["2*3 = 6, snake_case, [x](, **open and `tick"]


def test_buttons_of_a_question_answer_it_once_and_go(home: Home) -> None:
    """A27; approvals have their text form as well."""
    life = home.start()
    life.write("steps: go > launch 0 | done")
    life.until(lambda: life.session().state == "waiting" and len(home.server.sent) == 1)
    [asked] = home.server.sent
    assert [button.label for button in asked.buttons] == ["Approve", "Always here", "Deny"]
    click = home.server.press(asked, "Approve", ANN)
    home.server.updates.append(click)  # Delivered twice.
    life.until(lambda: home.replies() == ["done [done done]"])
    assert asked.buttons == () and asked.text.endswith("Approved by Ann.")
    assert [words for _, words in home.server.clicks] == ["Approved by Ann."] * len(home.server.clicks)


def test_a_button_that_is_pressed_too_late_or_by_somebody_else_says_so(home: Home) -> None:
    life = home.start()
    life.write("steps: go > launch 0 | done")
    life.until(lambda: life.session().state == "waiting" and len(home.server.sent) == 1)
    [asked] = home.server.sent
    life.arrived(home.server.press(asked, "Deny", BOB))
    assert home.server.clicks[-1][1].startswith("Only the person who asked")
    old = list(asked.buttons)
    life.say("/deny all no")
    asked.buttons = tuple(old)
    life.arrived(home.server.press(asked, "Approve", ANN))
    assert "answered" in home.server.clicks[-1][1]


def test_the_choices_of_a_question_are_buttons_numbers_and_words(home: Home) -> None:
    life = home.start()
    for reply in ("press", "2", "GREEN"):
        life.write("steps: go > ask colour [red,green] | done")
        life.until(lambda: life.session().state == "waiting" and home.server.sent[-1].buttons)
        asked = home.server.sent[-1]
        assert [button.label for button in asked.buttons] == ["red", "green"] and "2. green" in asked.text
        life.arrived(home.server.press(asked, "green", ANN)) if reply == "press" else life.write(reply)
        life.until(lambda: life.session().state == "idle")
        life.rest()
        assert "[done green]" in home.replies()[-1]


def test_the_commands_are_offered_in_the_menu(home: Home) -> None:
    life = home.start()
    life.until(lambda: "stop" in home.server.menu and "help" in home.server.menu)


def test_the_same_budget_holds_for_the_fakes_of_other_tests() -> None:
    """They are meant to wait for nothing."""
    assert UNHURRIED.burst >= 100


def _lost(life: Life) -> tuple[str | None, list[tuple[str, list[str]]]]:
    """What the list says of the chat's conversation, and what waits for a person."""
    session_id = life.session().session_id
    glance = life.do(life.store.glances([session_id]))[session_id]
    found = operations.attention((), (), (), life.do(life.store.owed(limit=10, given_up=True)), now=life.clock.now())
    return glance.delivery, [(item.kind, item.actions) for item in found.items]


@pytest.mark.parametrize("word", ["sent", "drop", "retry"])
def test_a_reply_that_was_given_up_is_told_until_a_person_decides_about_it(home: Home, word: str) -> None:
    """P4: in the list of conversations and among what waits for a person; "sent" says that it arrived, "drop" that all is well."""
    home.server.gone.add(ANN)
    life = home.start()
    life.write("say:hello")
    life.until(lambda: _lost(life) == ("dead", [("delivery_dead", ["open", "retry", "sent", "drop"])]))
    [owed] = life.do(life.store.owed(limit=10, given_up=True))
    home.server.gone.clear()
    life.do(life.gateway.decide_delivery(owed.delivery_id, word))
    if word == "retry":
        life.until(lambda: home.told() == ["hello"])
    assert _lost(life) == (None, [])
    [row] = life.do(life.store.delivery(owed.delivery_id))
    assert row.state == ("dead" if word == "drop" else "sent")
    if word != "drop":
        with pytest.raises(NotOver):
            life.do(life.gateway.decide_delivery(owed.delivery_id, "sent"))


def test_a_reply_that_was_given_up_is_no_longer_told_in_the_list_once_a_later_one_arrives(home: Home) -> None:
    home.server.gone.add(ANN)
    life = home.start()
    life.write("say:hello")
    life.until(lambda: _lost(life)[0] == "dead")
    home.server.gone.clear()
    life.say("say:again")
    assert _lost(life) == (None, [("delivery_dead", ["open", "retry", "sent", "drop"])])
