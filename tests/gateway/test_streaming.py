"""Answers that a chat is shown while they are written: by whichever process holds the platform, within its budget, whole at the end."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from holdfast.core.capabilities import Capabilities, Rates
from holdfast.core.delivery import REPEAT_LABEL
from holdfast.core.errors import Refused, Unavailable
from holdfast.core.live import Manners
from tests.fakes.platform import UNHURRIED, ChatServer, Sent
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life

STREAMS = Manners(still_working_s=30.0)
SLOW = "say:one|sleep:3|say: two|sleep:3|say: three"
WHOLE = "one two three"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def shown(home: Home, chat: str = ANN) -> list[str]:
    """What stands in a chat now."""
    return [sent.text for sent in home.server.shown if sent.place.chat == chat]


def only(home: Home) -> Sent:
    [sent] = home.server.shown
    return sent


def can(home: Home, **changes: object) -> None:
    home.server.capabilities = msgspec.structs.replace(home.server.capabilities, **changes)


def start(home: Home) -> Life:
    return home.start(manners=STREAMS)


def after_a_death(home: Home, *, unsure: bool = False) -> Life:
    """The process after one that died in the middle of an answer of which "one" is shown. `unsure`: that one did not hear that it is."""
    life = start(home)
    life.write("say:one|sleep:3|hang / say:one|sleep:3|say: two")
    home.server.moods = lambda: "late" if unsure else ""
    life.until(lambda: shown(home) == ["one"])
    life.die()
    home.server.moods = lambda: ""
    return start(home)


async def give_way(life: Life) -> None:
    life.gateway.hand_over.begin()
    await life.gateway.hand_over.give_way()


def test_an_answer_grows_in_one_message_and_ends_whole(home: Home) -> None:
    """B11"""
    life = start(home)
    life.say(SLOW)
    assert only(home).text == WHOLE
    assert only(home).edits == ["one", "one two"]
    assert only(home).reply_to == "anchor-1"


def test_an_answer_that_comes_at_once_is_sent_once(home: Home) -> None:
    life = start(home)
    life.say("say:quick")
    assert (only(home).text, only(home).edits) == ("quick", [])


def test_a_process_that_dies_leaves_its_message_to_the_next_which_continues_it(home: Home) -> None:
    """B11: no second message, nothing left of the first."""
    life = after_a_death(home)
    life.rest()
    assert shown(home) == ["one two"]


def test_another_process_that_holds_the_platform_shows_a_turn_that_runs_elsewhere(home: Home) -> None:
    """DESIGN 5.5: streaming follows the log, so it does not matter which process runs the turn."""
    old = start(home)
    old.write("say:one|sleep:5|say: two|sleep:5|say: three")
    old.until(lambda: shown(home) == ["one"])
    old.do(give_way(old))
    new = home.start(beside=old, manners=STREAMS)
    new.until(lambda: shown(home) == ["one two"])
    new.rest()
    assert only(home).text == WHOLE


def test_a_message_whose_sender_died_before_its_receipt_is_found_and_continued(home: Home) -> None:
    """P4, B11"""
    life = after_a_death(home, unsure=True)
    life.rest()
    assert shown(home) == ["one two"]


def test_where_nobody_can_know_whether_the_first_words_arrived_the_answer_says_that_it_may_be_a_repeat(home: Home) -> None:
    """P4"""
    can(home, finds=False)
    life = after_a_death(home, unsure=True)
    life.rest()
    assert shown(home) == ["one", f"{REPEAT_LABEL}one two"]


@pytest.mark.parametrize("hides", [Unavailable("Not now."), Refused("The thread is too long.")])
def test_where_the_platform_cannot_tell_of_the_first_words_the_answer_says_that_it_may_be_a_repeat(home: Home, hides: Exception) -> None:
    """P4: the platform is not asked for ever, nor without a pause."""
    home.server.hides = hides
    life = after_a_death(home, unsure=True)
    life.until(lambda: shown(home) == ["one", f"{REPEAT_LABEL}one two"], within_s=600)
    assert 0 < home.server.lookups < 25


def test_a_platform_that_knows_a_message_by_its_key_tells_which_one_it_was(home: Home) -> None:
    """P4: the same key is one send, also in another process."""
    can(home, finds=False, key_lasts_s=120.0)
    life = after_a_death(home, unsure=True)
    life.rest()
    assert shown(home) == ["one two"]


@pytest.mark.parametrize("way", [{"finds": True}, {"finds": False, "key_lasts_s": 120.0}, {"finds": False, "echoes_s": 5.0}])
@pytest.mark.parametrize("mood", ["cut", "lost"])
def test_first_words_of_unknown_outcome_are_settled_while_the_turn_runs(home: Home, way: dict[str, object], mood: str) -> None:
    """P4, B11: found, or sent under the same key, or told by their echo; then the answer grows on. Only an echo that never comes is not
    waited for here.
    """
    can(home, **way)
    moods = iter([mood])
    home.server.moods = lambda: next(moods, "")
    life = start(home)
    life.write("say:one|sleep:10|say: two|sleep:30|say: three")
    if (mood, "echoes_s" in way) != ("lost", True):
        life.until(lambda: shown(home) == ["one two"], within_s=20)
    life.rest()
    assert [text.removeprefix(REPEAT_LABEL) for text in shown(home)] == [WHOLE]
    assert len(home.server.sent) == 1


def test_what_came_of_first_words_that_were_sent_again_is_recorded_once_the_store_is_back(home: Home) -> None:
    """P4: else they would stay in flight, and the answer behind them."""
    can(home, finds=False, key_lasts_s=120.0)
    life = start(home)
    sent: list[str] = []

    def mood() -> str:
        sent.append("" if sent else "cut")
        if len(sent) == 2:  # The same key again: it is sent, and nothing can be stored for a while.
            life.failing = Unavailable("as it was told")
            life.loop.call_later(5, lambda: setattr(life, "failing", None))
        return sent[-1]

    home.server.moods = mood
    life.write("say:one|sleep:10|say: two|sleep:30|say: three")
    life.until(lambda: len(sent) > 2, within_s=60)
    life.rest()
    assert shown(home)[-1].removeprefix(REPEAT_LABEL) == WHOLE
    assert life.do(life.store.owed(limit=10)) == [] and life.do(life.store.live_deliveries()) == []


@pytest.mark.parametrize("mood", ["cut", "lost"])
def test_where_nobody_can_know_of_the_first_words_nothing_more_is_shown_until_the_answer_is_whole(home: Home, mood: str) -> None:
    """P4: and nobody reads the turn again and again."""
    can(home, finds=False)
    moods = iter([mood])
    home.server.moods = lambda: next(moods, "")
    life = start(home)
    life.write("say:one|sleep:60|say: two|sleep:3|say: three")
    life.pass_s(50)
    assert len(home.server.sent) == (mood == "cut")
    life.rest()
    assert shown(home) == [*(["one"] if mood == "cut" else []), f"{REPEAT_LABEL}{WHOLE}"]


def test_a_platform_that_does_not_tell_of_the_first_words_is_asked_ever_more_slowly_while_the_turn_runs(home: Home) -> None:
    """P4"""
    home.server.hides = Unavailable("Not now.")
    moods = iter(["cut"])
    home.server.moods = lambda: next(moods, "")
    life = start(home)
    life.write("say:one|sleep:100|say: two")
    life.pass_s(60)
    assert 2 <= home.server.lookups < 10
    home.server.hides = None
    life.rest()
    assert shown(home) == ["one two"]


def test_a_further_message_of_unknown_outcome_is_not_silently_repeated(home: Home) -> None:
    """P4: the first shows its part already, so the label stands before the next."""
    can(home, finds=False, text_limit=20)
    moods = iter(["", "cut"])
    home.server.moods = lambda: next(moods, "")
    life = start(home)
    life.say("say:first words and more|sleep:4|say: than one|sleep:4|say: message")
    assert shown(home) == ["first words and more", "than one", f"{REPEAT_LABEL}than one message"]


def test_an_answer_that_outgrows_a_message_is_continued_in_a_further_one(home: Home) -> None:
    can(home, text_limit=20)
    life = start(home)
    life.write("say:first words and more|sleep:4|say: than one message takes|sleep:4|say: in all")
    life.until(lambda: len(shown(home)) == 2)
    life.rest()
    assert shown(home) == ["first words and more", "than one message", "takes in all"]


def test_what_was_shown_and_is_no_part_of_the_answer_goes(home: Home) -> None:
    """A step that said much, and an answer that says little."""
    can(home, text_limit=20)
    life = start(home)
    life.write("steps: first words and more than one message takes > deed 6 | done")
    life.until(lambda: len(shown(home)) >= 2)
    life.rest()
    assert shown(home) == ["done [done done]"]


def test_what_the_agent_does_is_shown_while_it_does_it(home: Home) -> None:
    life = start(home)
    life.say("say:looking|call:deed 4")
    assert "looking\n\n_Working: deed: 4…_" in only(home).edits
    assert only(home).text == "looking"


def test_a_long_silence_says_that_work_goes_on_in_the_message_that_becomes_the_answer(home: Home) -> None:
    """E1: one notice for the session, gone with its turn."""
    life = home.start(manners=Manners(stream=False, still_working_s=30.0))
    life.say("sleep:100|say:done")
    assert only(home).text == "done"
    assert only(home).edits[0].startswith("_Still working (30 s") and len(only(home).edits) > 10


def test_the_notice_of_a_turn_goes_with_it_over_a_restart_and_never_stands_next_to_another(home: Home) -> None:
    """E1"""
    life = home.start(manners=Manners(stream=False, still_working_s=10.0))
    life.write("sleep:100|hang / say:done")
    life.until(lambda: len(shown(home)) == 1)
    life.write("say:next")
    life.die()
    life = home.start(manners=Manners(stream=False, still_working_s=10.0))
    life.rest()
    assert shown(home) == ["done", "next"]


@pytest.mark.parametrize("end", ["fail", "/stop"])
def test_a_turn_that_ends_without_an_answer_leaves_nothing_of_what_was_shown(home: Home, end: str) -> None:
    """E1, P3"""
    life = start(home)
    life.write("call:deed 5|fail" if end == "fail" else "call:deed 500")
    life.until(lambda: shown(home) == ["_Working: deed: 5…_"] or shown(home) == ["_Working: deed: 500…_"])
    if end == "/stop":
        life.write("/stop")
    life.rest()
    life.until(lambda: not any("Working" in text for text in shown(home)))
    assert len(shown(home)) == 1


def test_a_question_comes_below_what_was_said_and_the_answer_below_the_question(home: Home) -> None:
    """A27, B11: nobody has to look for the answer above."""
    life = start(home)
    life.write("say:let me ask|sleep:3|ask:which one?")
    life.until(lambda: life.session().state == "waiting" and len(shown(home)) == 2)
    assert shown(home) == ["let me ask", "which one?"]
    life.say("this")
    life.until(lambda: len(shown(home)) == 2)
    assert shown(home) == ["which one?", "let me asktold this"]


def test_an_answer_grows_only_once_what_another_conversation_of_its_chat_owes_has_arrived(home: Home) -> None:
    """P4, B11: the chat went back to an earlier conversation while a reply of the newer one had to wait."""
    life = start(home)
    first = life.say("say:hello").session_id
    life.say("/new")
    moods = iter(["refused"] * 3)
    home.server.moods = lambda: next(moods, "")
    life.write("say:one")
    life.until(lambda: home.logged("send failed"))
    life.do(life.gateway.resume_session(first, by="ann", client_id=None))
    life.write("say:two|sleep:20|say: three")
    life.until(lambda: shown(home)[-1] == "two")
    life.rest()
    assert shown(home)[-2:] == ["one", "two three"]


def test_an_answer_stands_below_what_a_newer_conversation_of_its_chat_said(home: Home) -> None:
    """B11: in the order of the log, also where two conversations of a chat speak at once."""
    life = start(home)
    life.write("say:one|hang")
    life.until(lambda: shown(home) == ["one"])
    life.do(life.gateway.reset(life.session().session_id, by="ann", client_id=None))
    life.rest()
    life.until(lambda: len(shown(home)) == 2)
    assert shown(home)[-1] == "one"


def test_while_a_turn_waits_for_its_user_nothing_says_that_it_works(home: Home) -> None:
    """E1, R5: also after a restart."""
    life = start(home)
    life.write("call:deed 2|ask:which one?")
    life.until(lambda: life.session().state == "waiting")
    life.die()
    life = start(home)
    life.pass_s(5)
    assert shown(home) == ["which one?"]


def test_flood_control_makes_the_stream_slower_and_never_doubles_the_answer(home: Home) -> None:
    """P4: edits that are refused are made good by the next."""
    moods = iter(["", *["limited"] * 3])
    home.server.moods = lambda: next(moods, "")
    life = start(home)
    life.say(SLOW)
    assert only(home).text == WHOLE


def test_where_the_edits_of_an_account_are_counted_together_all_of_them_wait_and_whole_answers_do_not(home: Home) -> None:
    """P8: one that is told to wait speaks for all."""
    life = start(home)
    for number in range(5):
        life.write("|".join(f"say:{word} |sleep:1" for word in range(40)), chat=f"c{number}", sender=f"c{number}")
    life.until(lambda: len(home.server.shown) == 5 and all(sent.edits for sent in home.server.shown))
    moods = iter(["limited edits"])
    home.server.moods = lambda: next(moods, "")
    life.until(lambda: home.logged("the platform asks to wait"))
    home.write("say:quick")
    before = sum(len(sent.edits) for sent in home.server.sent)
    life.pass_s(9)
    assert sum(len(sent.edits) for sent in home.server.sent) - before <= 4, "only what was on its way"
    assert shown(home) == ["quick"]
    life.pass_s(5)
    assert sum(len(sent.edits) for sent in home.server.sent) - before > 5


def test_edits_keep_to_their_budget_and_leave_room_for_final_texts(tmp_path: Path) -> None:
    """One budget for the account: ten answers that are being written do not keep an eleventh waiting."""
    with gateways.home(tmp_path) as home:
        rates = Rates(every_s=(0.1, 0.1), burst=5, edit_every_s=(0.5, 0.5), account_per_s=4.0, account_burst=8, kept=4)
        home.server = ChatServer(reconciles=True, by_cursor=False, capabilities=Capabilities(text_limit=1000, rates=rates, finds=True))
        life = start(home)
        for number in range(10):
            home.write("|".join(f"say:{word} |sleep:1" for word in range(30)), chat=f"c{number}")
        life.until(lambda: len(home.server.shown) == 10)
        before = sum(len(sent.edits) for sent in home.server.sent)
        life.pass_s(10)
        edits = sum(len(sent.edits) for sent in home.server.sent) - before
        assert 10 <= edits <= 4 * 10 + 8
        began = life.loop.time()
        home.write("say:quick")
        life.until(lambda: shown(home) == ["quick"])
        assert life.loop.time() - began < 3


def test_answers_that_begin_at_the_same_moment_leave_each_other_their_turn(tmp_path: Path) -> None:
    """P8: what one of them is about to send is not there any more for the others."""
    with gateways.home(tmp_path) as home:
        rates = Rates(every_s=(0.1, 0.1), burst=5, edit_every_s=(0.5, 0.5), account_per_s=1.0, account_burst=3, kept=0)
        home.server = ChatServer(reconciles=True, by_cursor=False, capabilities=Capabilities(text_limit=1000, rates=rates, finds=True))
        moods = iter(["limited account"])
        home.server.moods = lambda: next(moods, "")
        life = start(home)
        for number in range(10):
            home.write("say:one|sleep:60|say: two", chat=f"c{number}")
        life.until(lambda: home.logged("the platform asks to wait"))
        life.pass_s(9.5)
        assert home.server.sent == []
        life.away_until = life.loop.time() + 2  # All of them wait for the store before they send.
        life.until(lambda: home.server.sent)
        life.pass_s(0.9)
        assert len(home.server.sent) <= 3 + 3
        life.until(lambda: len(home.server.sent) == 10, within_s=10)


def test_an_answer_that_cannot_be_edited_any_more_is_sent_as_a_message_of_its_own(home: Home) -> None:
    """P4: somebody removed the message that showed it."""
    life = start(home)
    life.write("say:one|sleep:3|say: two")
    life.until(lambda: shown(home) == ["one"])
    only(home).removed = True
    life.rest()
    assert shown(home) == ["one two"]


@pytest.mark.parametrize("removes", [True, False])
def test_where_nothing_can_be_edited_an_answer_is_begun_once_and_then_sent_whole(home: Home, removes: bool) -> None:
    """P4: the part that was shown goes, where the platform can remove it."""
    can(home, removes=removes)
    home.server.fixed = True
    life = start(home)
    life.say("|sleep:3|".join(f"say:{word}" for word in range(8)))
    assert shown(home) == [*([] if removes else ["0"]), "01234567"]
    assert len(home.server.sent) == 2


def test_where_nothing_can_be_edited_the_next_process_begins_no_second_message(home: Home) -> None:
    """P4, B11"""
    home.server.fixed = True
    life = start(home)
    life.write("say:one|sleep:3|say: two|hang / say:one|sleep:3|say: two|sleep:3|say: three")
    life.until(lambda: home.server.sent and not shown(home))
    life.die()
    life = start(home)
    life.rest()
    assert shown(home) == ["one two three"] and len(home.server.sent) == 2


def test_what_was_shown_goes_when_only_the_whole_answer_finds_that_it_cannot_be_edited(home: Home) -> None:
    """P4"""
    life = start(home)
    life.write("say:one|sleep:3|say: two")
    life.until(lambda: shown(home) == ["one"])
    home.server.fixed = True
    life.rest()
    assert shown(home) == ["one two"]


@pytest.mark.parametrize("mood", ["refused", "cut"])
def test_what_cannot_be_edited_is_removed_also_if_that_fails_at_first(home: Home, mood: str) -> None:
    life = start(home)
    life.write("say:one|sleep:3|say: two|hang")
    life.until(lambda: shown(home) == ["one"])
    home.server.fixed = True
    moods = iter(["", mood, mood])
    home.server.moods = lambda: next(moods, "")
    life.until(lambda: not shown(home))
    life.pass_s(30)
    assert len(home.server.sent) == 1


def test_a_platform_that_cannot_edit_gets_the_answer_when_it_is_whole(home: Home) -> None:
    can(home, edits=False)
    life = start(home)
    life.say(SLOW)
    assert (only(home).text, only(home).edits) == (WHOLE, [])


def test_while_nothing_can_be_shown_yet_somebody_is_seen_typing(home: Home) -> None:
    life = start(home)
    life.say("sleep:12|say:done")
    assert 2 <= home.server.typed <= 4


def tell_of_a_death(home: Home, at: float) -> None:
    life = start(home)
    life.write("say:one|sleep:1.2|say: two|sleep:1.2|say: three")
    life.pass_s(at)
    life.die()
    life = start(home)
    life.rest()
    life.until(lambda: [text.removeprefix(REPEAT_LABEL) for text in shown(home)][-1] == WHOLE)


@pytest.mark.parametrize("reconciles", [True, False])
def test_killed_at_any_moment_of_a_stream_the_answer_is_whole_once_or_labelled(tmp_path: Path, reconciles: bool) -> None:
    """P4, B11: 0 lost, 0 silently doubled. With and without a platform that can be asked what arrived."""
    labelled = 0
    for number in range(60):
        folder = tmp_path / str(number)
        folder.mkdir()
        with gateways.home(folder) as home:
            home.server = ChatServer(
                reconciles=reconciles,
                by_cursor=number % 2 == 0,
                capabilities=Capabilities(text_limit=1000, rates=UNHURRIED, finds=reconciles),
            )
            home.server.takes_s = 0.03
            tell_of_a_death(home, 0.05 * number)
            plain = [text for text in shown(home) if not text.startswith(REPEAT_LABEL)]
            labelled += len(shown(home)) - len(plain)
            assert shown(home).count(WHOLE) <= 1
            assert len(plain) == 1 or (not reconciles and len(plain) <= 1 + (len(shown(home)) - len(plain)))
    assert labelled == 0 if reconciles else labelled < 10
