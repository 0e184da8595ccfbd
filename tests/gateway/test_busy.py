"""What becomes of a message that comes while its conversation is busy: it waits, steers, interrupts, or is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core import events as e
from holdfast.core import notices
from holdfast.core.busy import Mode
from holdfast.core.errors import ConversationBusy, DuplicateOtherContent, LaneFull
from holdfast.core.plans.accept import INTERRUPTED, Accepted
from tests.fakes.platform import session_key
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life, Story


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def post(life: Life, page: str, text: str, mode: Mode | None, *, client_id: str | None = None) -> Accepted:
    return life.do(life.gateway.post(page, text, client_id=client_id, mode=mode))


def stops(life: Life, name: str) -> list[e.StopRequested]:
    return [item.event for item in life.events(name) if isinstance(item.event, e.StopRequested)]


def statuses(life: Life, name: str) -> list[tuple[str, str]]:
    """What people said and what became of it."""
    return [(message.text, message.status) for message in life.transcript(name).messages if message.role == "user"]


# interrupt


def test_a_message_that_interrupts_cancels_the_turn_and_is_answered_before_others_that_wait(home: Home) -> None:
    """A21, P1, P6: one stop, which says why; what waited still gets its turn."""
    life = home.start()
    page = life.open_page()
    life.post(page, "say:half|hang")
    life.until(lambda: life.answers(page) == ["half"])
    life.post(page, "first")
    life.post(page, "second")
    accepted = post(life, page, "now", Mode.INTERRUPT)
    life.rest(page)
    assert life.outcomes(page) == ["cancelled", "completed", "completed", "completed"]
    assert life.answers(page) == ["half", "re: now", "re: first", "re: second"]
    [stop] = stops(life, page)
    assert (stop.by, stop.why, stop.turn_id) == ("owner", INTERRUPTED, life.transcript(page).turns[0].id)
    assert accepted.answered is None and home.edge.count("interrupted: stop") == 1


def test_the_stop_and_the_message_that_interrupts_are_one_transaction(home: Home) -> None:
    """P1, A21"""
    life = home.start()
    page = life.open_page()
    life.post(page, "hang")
    life.until(lambda: "hang" in home.texts)
    commits = life.commits
    post(life, page, "now", Mode.INTERRUPT)
    kinds = [item.kind for item in life.events(page)]
    place = kinds.index("stop.requested")
    assert kinds[place + 1] == "message.accepted"
    life.rest(page)
    assert life.commits > commits


def test_a_tool_that_does_not_end_does_not_hold_up_a_message_that_interrupts(home: Home) -> None:
    """A21"""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > look slow > deed 0 | done")
    life.until(lambda: home.edge.count("look slow begins"))
    post(life, page, "now", Mode.INTERRUPT)
    life.rest(page)
    assert life.outcomes(page) == ["cancelled", "completed"] and life.answers(page)[-1] == "re: now"


def test_an_interrupt_cancels_a_turn_that_waits_for_answers_and_answers_nothing(home: Home) -> None:
    """R5, A21: its questions are over, and the message is the next turn."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > ask colour > ask size | done")
    life.until(lambda: life.session(page).state == "waiting")
    accepted = post(life, page, "blue", Mode.INTERRUPT)
    life.rest(page)
    assert accepted.answered is None and life.transcript(page).questions == []
    assert life.outcomes(page) == ["cancelled", "completed"] and life.answers(page)[-1] == "re: blue"


def test_two_messages_that_interrupt_are_answered_in_their_order(home: Home) -> None:
    """P1: what waits is not interrupted, and a turn is stopped once."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > stubborn 0 | done")
    life.until(lambda: life.session(page).state == "running" and "model.responded" in [item.kind for item in life.events(page)])
    post(life, page, "one", Mode.INTERRUPT)
    post(life, page, "two", Mode.INTERRUPT)
    life.rest(page)
    assert len(stops(life, page)) == 1
    assert life.answers(page)[-2:] == ["re: one", "re: two"]


def test_a_stop_right_after_an_interrupt_stops_the_turn_of_the_new_message(home: Home) -> None:
    """A21: a stop always wins; it is not taken for one that came late to the turn before."""
    life = home.start()
    page = life.open_page()
    life.post(page, "hang")
    life.until(lambda: "hang" in home.texts)
    post(life, page, "say:new|hang", Mode.INTERRUPT)
    life.until(lambda: life.answers(page) == ["new"])
    life.post(page, "/stop")
    life.rest(page)
    assert life.outcomes(page) == ["cancelled", "cancelled"]


@pytest.mark.parametrize("mode", [Mode.STEER, Mode.INTERRUPT, Mode.REJECT])
def test_with_nothing_to_do_every_mode_is_a_plain_message(home: Home, mode: Mode) -> None:
    """P1"""
    life = home.start()
    page = life.open_page()
    post(life, page, "hello", mode)
    life.rest(page)
    assert life.answers(page) == ["re: hello"] and life.outcomes(page) == ["completed"] and stops(life, page) == []


def test_an_interrupt_of_a_turn_that_a_crash_interrupted_ends_it_for_good(home: Home) -> None:
    """R0, B12: the stop is on record, so no start revives it."""
    life = home.start()
    page = life.open_page()
    life.post(page, "say:half|hang")
    life.until(lambda: life.answers(page) == ["half"])
    post(life, page, "now", Mode.INTERRUPT)
    life.die()
    life = home.start()
    life.rest(page)
    assert life.outcomes(page) == ["cancelled", "completed"] and life.answers(page) == ["half", "re: now"]
    assert not life.session(page).resume_pending


def test_an_interrupt_continues_from_a_turn_that_was_left_as_any_message_does(home: Home) -> None:
    """A23"""
    life = home.start(auto_resume=False)
    life.cut()
    life = home.start(auto_resume=False)
    life.rest()
    life.decided("R7", "left")
    life.say("/interrupt hello")
    assert life.outcomes() == ["set_aside", "completed"] and stops(life, ANN) == []


def test_a_lane_that_is_full_refuses_a_message_that_would_interrupt_and_stops_nothing(home: Home) -> None:
    """P1"""
    life = home.start(max_waiting=1)
    page = life.open_page()
    life.post(page, "hang")
    life.until(lambda: "hang" in home.texts)
    life.post(page, "waits")
    with pytest.raises(LaneFull):
        post(life, page, "now", Mode.INTERRUPT)
    assert life.session(page).state == "running" and not life.session(page).stop_requested


def test_an_interrupt_through_the_successor_stops_a_turn_in_the_retiring_process(home: Home) -> None:
    """C24: within a second or so, and the message is answered by the process that serves."""
    old = home.start()
    page = old.open_page()
    old.post(page, "hang")
    old.until(lambda: "hang" in home.texts)
    old.gateway.hand_over.begin()
    old.do(old.gateway.hand_over.give_way())
    new = home.start(beside=old)
    retiring = old.loop.create_task(old.gateway.hand_over.retire())
    post(new, page, "now", Mode.INTERRUPT)
    new.until(retiring.done)
    new.rest(page)
    assert new.outcomes(page) == ["cancelled", "completed"] and new.answers(page) == ["re: now"]


def test_the_same_message_again_interrupts_nothing_more(home: Home) -> None:
    """P1: it is known by its name."""
    life = home.start()
    page = life.open_page()
    life.post(page, "hang")
    life.until(lambda: "hang" in home.texts)
    first = post(life, page, "say:new|hang", Mode.INTERRUPT, client_id="c1")
    life.until(lambda: life.answers(page) == ["new"])
    again = post(life, page, "say:new|hang", Mode.INTERRUPT, client_id="c1")
    assert (again.message_id, again.duplicate) == (first.message_id, True)
    life.pass_s(5)
    assert life.session(page).state == "running" and len(stops(life, page)) == 1


# reject


def test_a_message_that_is_not_to_wait_is_refused_on_record_and_the_chat_is_told_once(home: Home) -> None:
    """P1: a refusal that is seen, also when the platform brings the message again."""
    life = home.start(busy={"default": Mode.REJECT})
    life.under_way()
    update = home.write("and now?")
    life.until(lambda: update.dedup_key in home.server.confirmed)
    life.until(lambda: notices.rejected() in home.told())
    life.die()
    home.server.confirmed.clear()
    life = home.start(busy={"default": Mode.REJECT})
    life.until(lambda: update.dedup_key in home.server.confirmed)
    life.pass_s(5)
    assert statuses(life, ANN)[-1] == ("and now?", "refused")
    assert [text for text in home.told() if text == notices.rejected()] == [notices.rejected()]
    [told] = [sent for sent in home.sent() if sent.text == notices.rejected()]
    assert told.anchor == update.anchor and life.session().queued == 0
    life.say("/stop")
    life.say("hello")
    assert home.replies()[-1] == "re: hello"


def test_over_http_a_refusal_is_the_answer_each_time_it_is_asked_for(home: Home) -> None:
    """P1: the message is on record as refused, once."""
    life = home.start()
    page = life.open_page()
    life.post(page, "hang")
    life.until(lambda: "hang" in home.texts)
    for _ in range(2):
        with pytest.raises(ConversationBusy):
            post(life, page, "and now?", Mode.REJECT, client_id="c1")
    with pytest.raises(DuplicateOtherContent):
        post(life, page, "something else", Mode.REJECT, client_id="c1")
    refused = [item.event for item in life.events(page) if isinstance(item.event, e.MessageRefused)]
    assert len(refused) == 1 and statuses(life, page)[-1] == ("and now?", "refused")
    life.post(page, "/stop")
    life.rest(page)
    with pytest.raises(ConversationBusy):
        post(life, page, "and now?", Mode.REJECT, client_id="c1")
    assert life.outcomes(page) == ["cancelled"]


def test_a_conversation_whose_messages_wait_is_busy(home: Home) -> None:
    """P1: also while nothing runs, because of a pause."""
    life = home.start()
    page = life.open_page()
    life.do(life.gateway.pausing.pause(holder="op", for_s=60))
    post(life, page, "first", Mode.REJECT)
    with pytest.raises(ConversationBusy):
        post(life, page, "second", Mode.REJECT)


# policies and commands


@pytest.mark.parametrize("mode", list(Mode))
def test_a_plain_message_answers_an_open_question_whatever_the_policy_of_its_chat(home: Home, mode: Mode) -> None:
    """A27: a policy says what becomes of messages that are for no question."""
    life = home.start(busy={"default": mode})
    page = life.open_page()
    life.post(page, "steps: go > ask colour | done")
    life.until(lambda: life.session(page).state == "waiting")
    life.post(page, "blue")
    life.rest(page)
    assert life.answers(page) == ["done [done blue]"]


@pytest.mark.parametrize(
    ("mode", "outcomes"),
    [(Mode.QUEUE, ["completed", "completed"]), (Mode.STEER, ["completed"]), (Mode.INTERRUPT, ["cancelled", "completed"])],
)
def test_the_policy_of_a_chat_counts_for_messages_that_say_nothing_else(home: Home, mode: Mode, outcomes: list[str]) -> None:
    life = home.start(busy={"default": Mode.REJECT, session_key(ANN): mode})
    life.write("steps: go > deed 3 | done")
    life.until(lambda: life.session().state == "running")
    life.say("more")
    assert life.outcomes() == outcomes


@pytest.mark.parametrize(
    ("command", "outcomes"),
    [("queue", ["completed", "completed"]), ("steer", ["completed"]), ("interrupt", ["cancelled", "completed"])],
)
def test_a_command_wins_over_the_policy_of_its_chat(home: Home, command: str, outcomes: list[str]) -> None:
    life = home.start(busy={"default": Mode.REJECT})
    life.write("steps: go > deed 3 | done")
    life.until(lambda: life.session().state == "running")
    life.say(f"/{command} more")
    assert life.outcomes() == outcomes
    assert any("more" in text for text in home.replies())


@pytest.mark.parametrize("command", ["queue", "steer", "interrupt"])
def test_a_command_without_words_says_what_is_missing(home: Home, command: str) -> None:
    life = home.start()
    life.say(f"/{command}")
    assert home.told() == [f"Say what to send: /{command} TEXT"]


def test_who_interrupts_is_on_record_and_the_turn_has_the_rights_of_that_message(home: Home) -> None:
    """DESIGN 5.6"""
    life = home.start()
    life.under_way()
    life.say("/interrupt now", sender="bob")
    assert stops(life, ANN)[0].by == "fakechat:bob"
    assert home.heard[-1].causes[0].sender == "fakechat:bob"


# deaths


@pytest.mark.parametrize("mode", [Mode.INTERRUPT, Mode.REJECT])
def test_a_death_at_any_write_loses_no_message_and_revives_no_turn_that_was_interrupted(tmp_path: Path, mode: Mode) -> None:
    """P1, P6, A21, B12: the process dies after each of its commits in turn."""
    gateways.with_a_death_after_each_commit(tmp_path, lambda story, home: _tell(story, home, mode), at_least=8)


def _tell(story: Story, home: Home, mode: Mode) -> None:
    page = story.page
    post(story.life, page, "steps: go > deed 0.001 > look slow | done", None)
    story.until(lambda: bool(home.edge.count("look slow begins")) and story.life.session(page).state == "running")
    post(story.life, page, "waits", None)
    story.until(lambda: story.life.commits > 0)
    if mode is Mode.REJECT:
        with pytest.raises(ConversationBusy):
            post(story.life, page, "now", mode)
        story.life.post(page, "/stop")
    else:
        post(story.life, page, "now", mode)
    story.until(lambda: None not in story.life.outcomes(page) and not story.life.session(page).queued)
    life = story.life
    life.rest(page)
    assert life.answers(page)[1:] == (["re: now", "re: waits"] if mode is Mode.INTERRUPT else ["re: waits"])
    assert life.outcomes(page)[0] == "cancelled" and len(home.done) == len(set(home.done))
    assert statuses(life, page).count(("now", "refused")) == (1 if mode is Mode.REJECT else 0)
