"""Calls that a person has to approve: what waits, what goes ahead, who may answer, and what survives a death (R5, P5, A27, B10)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core import events as e
from holdfast.core.errors import QuestionClosed
from holdfast.core.messages import Question
from holdfast.core.plans.answer import Answer
from holdfast.core.policy import Rules, parse
from holdfast.core.redaction import Secrets
from tests.fakes.agents_steps import whole_answer
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life
from tests.gateway.test_steps import kinds, results

COMMITS = 400


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def asked(life: Life, page: str) -> list[Question]:
    return life.transcript(page).questions


def judge(life: Life, question: Question, verdict: str = "approve", *, scope: str = "once", reason: str = "", by: str = "owner") -> None:
    said = Answer(by=by, verdict=verdict, scope=scope, reason=reason)
    life.do(life.gateway.judge(question.question_id, said))


def waiting(life: Life, page: str, script: str, questions: int = 1) -> list[Question]:
    """A turn that waits for so many approvals."""
    life.post(page, f"steps: {script}")
    life.until(lambda: life.session(page).state == "waiting")
    found = asked(life, page)
    assert len(found) == questions
    return found


def test_a_call_that_needs_an_approval_is_asked_with_its_step_and_starts_when_somebody_approved_it(home: Home) -> None:
    """R5, P5"""
    life = home.start()
    page = life.open_page()
    [question] = waiting(life, page, "go > launch 0 | done")
    assert (question.form, question.pattern, home.done) == ("approval", "launch", [])
    assert question.call is not None and (question.call.name, question.call.arguments["command"]) == ("launch", "0")
    assert "the yard" in question.text and kinds(life, page) == ["model.responded", "question.asked", "turn.waiting"]
    assert (life.session(page).owner, life.gateway.runner.running) == (None, 0)
    judge(life, question)
    life.rest(page)
    assert life.answers(page) == ["done [done done]"] and len(home.done) == 1
    [started] = [item.event for item in life.events(page) if isinstance(item.event, e.ToolStarted)]
    assert isinstance(started, e.ToolStarted) and (started.approval, started.place) == (question.question_id, "the yard")


def test_all_calls_of_a_step_are_asked_together_and_pure_ones_go_ahead(home: Home) -> None:
    """What stands behind a call that needs a person waits with it; what stands before it does not."""
    life = home.start()
    page = life.open_page()
    first, second = waiting(life, page, "go > deed 0 > launch 1 > deed 0 > launch 2 > look a | done", 2)
    turn = life.turn(page).id
    assert home.done == [f"{turn}.0.1"] and home.edge.count("look a begins") == 1
    assert kinds(life, page)[:3] == ["model.responded", "question.asked", "question.asked"]
    judge(life, second)
    life.pass_s(3)
    assert life.session(page).state == "waiting" and home.done == [f"{turn}.0.1"]
    judge(life, first)
    life.rest(page)
    assert home.done == [f"{turn}.0.{number}" for number in (1, 2, 3, 4)]
    assert life.answers(page) == ["done [done done] [done done] [done done] [done done] [done saw a]"]


def test_a_call_that_lost_a_secret_to_the_record_does_not_run(home: Home) -> None:
    """After a restart, and where a model repeats the mark that it was shown. Words that only look like one are words."""
    home.secrets = Secrets({"KEY": "hunter2-hunter2"})
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > deed [secret KEY] > terminal [secret garden] > deed 0 | done")
    life.rest(page)
    assert home.done == [f"{life.turn(page).id}.0.3"]
    assert "its arguments hold a mark in the place of a secret" in life.answers(page)[0]
    assert "[secret garden]" in life.answers(page)[0]


def test_a_denied_call_is_a_failed_result_with_the_reason(home: Home) -> None:
    life = home.start()
    page = life.open_page()
    [question] = waiting(life, page, "go > launch 0 > deed 0 | done")
    judge(life, question, "deny", reason="it rains")
    life.rest(page)
    turn = life.turn(page).id
    assert results(life, page)[f"{turn}.0.1"] == ("failed", "owner denied it, so it was not run. The reason: it rains")
    assert home.done == [f"{turn}.0.2"] and life.outcomes(page) == ["completed"]


def test_an_approval_that_comes_while_other_calls_run_ends_no_attempt(home: Home) -> None:
    """A27: the turn never waits."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > deed 5 > launch 0 | done")
    life.until(lambda: asked(life, page))
    judge(life, asked(life, page)[0])
    life.rest(page)
    assert life.turn(page).attempt == 1 and "turn.waiting" not in kinds(life, page) and len(home.done) == 2


def test_always_allows_the_next_calls_of_the_conversation_and_no_other_conversation(home: Home) -> None:
    life = home.start()
    page, other = life.open_page(), life.open_page()
    [question] = waiting(life, page, "go > launch 0 | again > launch 1 | done")
    judge(life, question, scope="session", by="ann")
    life.rest(page)
    assert life.outcomes(page) == ["completed"] and len(home.done) == 2
    [rule] = life.do(life.gateway.rules(page))
    assert (rule.pattern, rule.by) == ("launch", "ann")
    waiting(life, other, "go > launch 0 | done")
    life.do(life.gateway.remove_rule(rule.rule_id, by="owner"))
    waiting(life, page, "go > launch 0 | done")


def test_a_rule_that_is_taken_back_before_its_call_starts_allows_nothing(home: Home) -> None:
    life = home.start()
    page = life.open_page()
    [question] = waiting(life, page, "go > launch 0 | done")
    judge(life, question, scope="session")
    life.rest(page)
    life.post(page, "steps: go > deed 5 > launch 0 | done")
    life.until(lambda: life.session(page).state == "running")
    life.pass_s(1)
    [rule] = life.do(life.gateway.rules(page))
    life.do(life.gateway.remove_rule(rule.rule_id, by="owner"))
    life.until(lambda: life.session(page).state == "waiting")
    assert len(asked(life, page)) == 1 and len(home.done) == 2


def test_what_the_configuration_denies_is_a_failed_result_and_asks_nobody(home: Home) -> None:
    life = home.start(policy=Rules(deny=(parse("launch"),), ask=(parse("look"),), allow=(parse("deed"),)))
    page = life.open_page()
    [question] = waiting(life, page, "go > launch 0 > look a > deed 0 | done")
    assert question.call is not None and question.call.name == "look" and question.pattern is None
    judge(life, question)
    life.rest(page)
    turn = life.turn(page).id
    assert results(life, page)[f"{turn}.0.1"] == ("failed", "It was not run. The rule launch denies it.")
    assert home.done == [f"{turn}.0.3"] and life.outcomes(page) == ["completed"]


def test_a_call_that_would_work_elsewhere_by_now_is_asked_again(home: Home) -> None:
    """P5: the approval was for another place."""
    life = home.start()
    page = life.open_page()
    first, second = waiting(life, page, "go > launch 0 > launch 1 | done", 2)
    judge(life, first)
    home.edge.place = "the street"
    judge(life, second)
    life.until(lambda: len(asked(life, page)) == 2)
    again = asked(life, page)
    assert home.done == [] and all("the street" in question.text for question in again)
    for question in again:
        judge(life, question)
    life.rest(page)
    assert len(home.done) == 2 and life.outcomes(page) == ["completed"]


def test_an_approval_answered_while_nobody_was_there_starts_its_call_after_the_restart(home: Home) -> None:
    life = home.start()
    page = life.open_page()
    [question] = waiting(life, page, "go > launch 0 | done")
    life.stop()
    home.later(3600)
    life = home.start()
    assert [each.question_id for each in asked(life, page)] == [question.question_id]
    judge(life, question)
    life.rest(page)
    assert len(home.done) == 1 and life.answers(page) == ["done [done done]"]


def test_an_approval_through_the_successor_reaches_a_turn_of_the_retiring_process(home: Home) -> None:
    """C24"""
    old = home.start()
    page = old.open_page()
    old.post(page, "steps: go > deed 9 > launch 0 | done")
    old.until(lambda: asked(old, page))
    old.gateway.hand_over.begin()
    old.do(old.gateway.hand_over.give_way())
    new = home.start(beside=old)
    retiring = old.loop.create_task(old.gateway.hand_over.retire())
    judge(new, asked(new, page)[0])
    new.until(retiring.done)
    new.rest(page)
    assert new.answers(page) == ["done [done done] [done done]"] and new.turn(page).attempt == 1 and len(home.done) == 2


def test_the_first_to_expire_ends_the_turn_and_voids_what_was_approved(home: Home) -> None:
    """R5: nothing of it is unfinished work, and a late answer says so."""
    life = home.start()
    page = life.open_page()
    first, second = waiting(life, page, "go > launch 0 > launch 1 | done", 2)
    judge(life, first)
    life.stop()
    home.later(25 * 3600)
    life = home.start()
    life.until(lambda: life.outcomes(page) == ["failed"])
    assert asked(life, page) == [] and home.done == []
    for late in (first, second):
        with pytest.raises(QuestionClosed):
            judge(life, late)
    life.post(page, "hello")
    life.rest(page)
    assert life.outcomes(page) == ["failed", "completed"] and home.done == []


def test_a_stop_ends_a_turn_that_waits_for_an_approval_and_starts_nothing(home: Home) -> None:
    """A21"""
    life = home.start()
    page = life.open_page()
    [question] = waiting(life, page, "go > launch 0 | done")
    life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
    assert life.outcomes(page) == ["cancelled"] and home.done == [] and asked(life, page) == []
    with pytest.raises(QuestionClosed):
        judge(life, question)


def test_a_plain_message_approves_nothing_waits_and_is_told_so(home: Home) -> None:
    """A27"""
    life = home.start()
    page = life.open_page()
    [question] = waiting(life, page, "go > launch 0 | done")
    life.post(page, "yes")
    assert life.session(page).state == "waiting" and life.session(page).queued == 1 and home.done == []
    assert any("needs your approval" in text for text in life.notices(page))
    judge(life, question)
    life.rest(page)
    assert life.answers(page) == ["done [done done]", "re: yes"]


def test_a_message_answers_the_question_though_an_approval_is_older(home: Home) -> None:
    """A27"""
    life = home.start()
    page = life.open_page()
    approval, _ = waiting(life, page, "go > launch 0 > ask colour | done", 2)
    life.post(page, "blue")
    assert [question.form for question in asked(life, page)] == ["approval"]
    judge(life, approval)
    life.rest(page)
    assert life.answers(page) == ["done [done done] [done blue]"]


def test_an_agent_without_steps_can_be_careful(home: Home) -> None:
    life = home.start(policy=Rules(allow=(parse("deed"),)))
    page = life.open_page()
    life.post(page, "careful:deed 0|say:over")
    life.until(lambda: life.session(page).state == "waiting")
    judge(life, asked(life, page)[0], scope="session")
    life.rest(page)
    assert len(home.done) == 1 and life.answers(page) == ["over"]
    life.post(page, "careful:deed 0|say:again")
    life.rest(page)
    assert len(home.done) == 2 and life.answers(page) == ["over", "again"]


# deaths

SCRIPT = "go > launch 0.001 > look a > deed 0.001 > launch 0.002 | act > launch 0.003 | done"


@pytest.mark.parametrize("verdicts", [("approve", "approve", "approve"), ("approve", "deny", "approve")])
def test_a_death_at_any_write_asks_starts_and_uses_up_each_approval_once(tmp_path: Path, verdicts: tuple[str, ...]) -> None:
    """R5, P5, B10: killed after every commit of asking, answering and starting."""
    for commits in range(1, COMMITS):
        folder = tmp_path / str(commits)
        folder.mkdir()
        with gateways.home(folder) as home:
            if not _tell(home, commits, dict(zip(("0.001", "0.002", "0.003"), verdicts, strict=True))):
                assert commits > 15
                return
    raise AssertionError("the story never came to its end")


def _tell(home: Home, commits: int, verdicts: dict[str, str]) -> bool:
    """Whether the process died, after so many commits since the message was accepted."""
    life, died = home.start(), False
    page = life.open_page()
    life.commits = 0
    life.post(page, f"steps: {SCRIPT}")
    while life.outcomes(page)[:1] in ([], [None]):
        life.pass_s(0.0003)
        for question in asked(life, page):
            if not died and life.commits >= commits:
                break
            assert question.call is not None
            judge(life, question, verdicts[question.call.arguments["command"]])
        if not died and life.commits >= commits:
            life.die()
            life, died = home.start(), True
    life.rest(page)
    _check(home, life, page, verdicts)
    life.stop()
    return died


def _check(home: Home, life: Life, page: str, verdicts: dict[str, str]) -> None:
    turn, events = life.turn(page), [item.event for item in life.events(page)]
    assert turn.outcome == "completed"
    ids = {f"{turn.id}.0.1": "0.001", f"{turn.id}.0.4": "0.002", f"{turn.id}.1.1": "0.003"}
    questions = {event.question_id: event.call_id for event in events if isinstance(event, e.QuestionAsked)}
    assert sorted(questions.values()) == sorted(ids), "each call is asked about once"
    started = [event for event in events if isinstance(event, e.ToolStarted) and event.call_id in ids]
    used = [event.approval for event in started if event.approval is not None]
    assert len(used) == len(set(used)) and all(questions[approval] in ids for approval in used)
    found = results(life, page)
    for call_id, command in ids.items():
        ran = home.done.count(call_id)
        if verdicts[command] == "deny":
            assert ran == 0 and found[call_id][0] == "failed"
        else:
            assert [event.approval is not None for event in started if event.call_id == call_id] == [True]
            assert ran == 1 if found[call_id][0] == "done" else ran <= 1
    assert len(home.done) == len(set(home.done)), f"a call ran twice: {home.done}"
    expected: Any = found
    assert life.answers(page)[0] == whole_answer(turn.id, SCRIPT, expected, [])


# in a chat


def test_in_a_chat_an_approval_is_sent_whole_and_answered_by_a_command(home: Home) -> None:
    """A27"""
    life = home.start()
    life.write("steps: go > launch 0 > launch 1 | done")
    life.until(lambda: len(home.told()) == 2 and life.session().state == "waiting")
    assert all("/approve q_" in text and "/deny q_" in text and "the yard" in text for text in home.told())
    life.write("/approve")
    life.until(lambda: "Name one of them, or say all" in home.told()[-1])
    first, second = life.transcript().questions
    life.write(f"/deny {first.question_id} too early")
    life.until(lambda: home.told()[-1] == "The call is denied.")
    life.say(f"/approve {second.question_id[:8]} always")
    [reply] = home.replies()
    assert reply == "done [failed fakechat:ann denied it, so it was not run. The reason: too early] [done done]"
    assert [rule.pattern for rule in life.do(life.gateway.rules(life.session().session_id))] == ["launch"]
    life.say("/approve")
    assert home.told()[-1] == "Nothing here waits for an approval."


@pytest.mark.parametrize("words", ["nonsense", "not this one", "Q_WRONG", "alwys", "all of it", "{question} no, wait"])
def test_an_approval_with_words_that_are_not_understood_approves_nothing(home: Home, words: str) -> None:
    """A27, P5: it may mean another call, or none."""
    life = home.start()
    life.write("steps: go > launch 0 | done")
    life.until(lambda: len(home.told()) == 1 and life.session().state == "waiting")
    [asked] = life.transcript().questions
    life.write(f"/approve {words.format(question=asked.question_id)}")
    life.until(lambda: home.told()[-1].startswith("Nothing was approved: "))
    assert life.session().state == "waiting" and home.done == []
    life.say("/approve")
    assert len(home.done) == 1


def test_words_that_were_written_before_a_question_arrived_approve_nothing(home: Home) -> None:
    """A27: they may have been meant for a call that somebody else has approved since."""
    life = home.start()
    home.server.takes_s = 5.0
    life.write("steps: go > launch 0 | done")
    life.until(lambda: life.session().state == "waiting")
    assert home.told() == []
    life.write("/approve")
    life.until(lambda: any("Nothing here waits" in message.text for message in life.transcript().messages))
    assert life.session().state == "waiting" and home.done == []
    life.until(lambda: len(home.told()) == 2)
    home.server.takes_s = 0.0
    life.say("/approve")
    assert len(home.done) == 1


def test_in_a_group_only_the_one_who_asked_for_the_work_may_approve_it(home: Home) -> None:
    life = home.start()
    life.write("steps: go > launch 0 | done", chat="group", sender="ann")
    life.until(lambda: life.session("group").state == "waiting")
    life.write("/approve", chat="group", sender="bob")
    life.until(lambda: "only by the person who asked" in home.told("group")[-1])
    assert home.done == [] and life.session("group").state == "waiting"
    life.say("/approve all", chat="group", sender="ann")
    assert len(home.done) == 1


class Note(gateways.Deed):
    """Changes what every conversation is given."""

    name = "note"

    def shared(self, arguments: dict[str, Any]) -> bool:
        return True


def noting(home: Home) -> None:
    tools = home.tools
    home.tools = lambda: tools() | {"note": Note(home.done, home.edge)}  # type: ignore[method-assign]


def test_what_concerns_others_is_done_unasked_only_for_an_operator_and_approved_by_nobody_else(home: Home) -> None:
    """R5: the one who asked for the work may not approve it; a plain word of theirs waits, as with any approval."""
    noting(home)
    home.server.operators.add("boss")
    life = home.start()
    page = life.open_page()
    life.post(page, "call:note 0")
    life.rest(page)
    life.say("call:note 0", chat="boss", sender="boss")
    assert len(home.done) == 2, "on the page and by an operator"
    life.write("call:note 0", chat="room", sender="ann")
    life.until(lambda: any("only an administrator can approve it" in told for told in home.told("room")))
    [question] = asked(life, "room")
    life.write("/approve", chat="room", sender="ann")
    life.until(lambda: f"'{question.question_id}' can be answered only by an administrator." in home.told("room"))
    life.die()
    life = home.start()
    assert len(home.done) == 2 and life.session("room").state == "waiting"
    life.write("/approve", chat="room", sender="boss")
    life.rest("room")
    assert len(home.done) == 3 and life.outcomes("room") == ["completed"]


def test_a_configuration_may_let_everybody_do_what_concerns_others(home: Home) -> None:
    noting(home)
    life = home.start(policy=Rules(allow=(parse("note"),)))
    life.say("call:note 0", chat="room", sender="ann")
    assert len(home.done) == 1
