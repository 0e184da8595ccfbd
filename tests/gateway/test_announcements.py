"""Who hears of a stop or a restart, once, where they asked, over the processes that take part in it and die in between."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.lifecycle import GatewayState
from holdfast.core.restarts import By, Chat, Request
from holdfast.process.restart_note import RestartNote
from tests import words
from tests.fakes.platform import Sent, Update, session_key
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life

BOB, LOBBY = "bob", "lobby"
HOMES = (session_key(LOBBY),)
CUT, STOPPING = words.RESTARTING_INTERRUPTS, words.STOPPING_INTERRUPTS
KILL_STEP_S = 0.0005


class World:
    """A home whose processes can be restarted. `asked` is what they were asked for, and do at once where it `obeys`."""

    def __init__(self, home: Home, folder: Path) -> None:
        self.home, self.folder = home, folder
        self.asked: list[Request] = []
        self.obeys, self.begun_at = False, 0.0
        self.note = self.restarted_by(cuts=True)
        home.server.operators.add(ANN)

    def restarted_by(self, *, cuts: bool) -> RestartNote:
        self.home.restarts = self.note = RestartNote(self.folder, cuts=cuts, begin=self._begin, now=lambda: 1)
        return self.note

    def _begin(self, request: Request) -> None:
        self.asked.append(request)
        if self.obeys:
            life = self.home.lives[-1]
            self.begun_at = life.loop.time()
            life.loop.create_task(life.gateway.stop(reason="restart_timeout"))

    def ask(self, life: Life, *, thread: str | None = None, topic: str | None = None, sender: str = ANN) -> Update:
        update = self.home.server.write(ANN, sender, "/restart", thread=thread, topic=topic)
        life.until(lambda: update.dedup_key in self.home.server.confirmed)
        return update

    def restart(self, life: Life, **settings: Any) -> Life:
        """This process ends, and the next one serves."""
        life.stop("restart_timeout")
        return self.next(**settings)

    def next(self, **settings: Any) -> Life:
        life = self.home.start(**settings)
        life.pass_s(5)
        return life

    def in_thread(self, thread: str | None) -> list[Sent]:
        return [sent for sent in self.home.server.sent if sent.session_key == session_key(ANN, thread=thread)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with gateways.home(tmp_path) as made:
        yield World(made, tmp_path)


# asked for in a chat


@pytest.mark.parametrize("cuts", (True, False))
def test_the_chat_that_asked_is_answered_and_told_when_it_is_back_as_a_reply_in_its_thread(world: World, cuts: bool) -> None:
    """C11, C12, C13"""
    world.restarted_by(cuts=cuts)
    life = world.home.start(home_channels=HOMES)
    command = world.ask(life, thread="7", topic="news")
    assert [request.by for request in world.asked] == [By.CHAT]
    world.restart(life, home_channels=HOMES)
    told = world.in_thread("7")
    assert [sent.text for sent in told] == [words.RESTARTING, words.BACK]
    assert command.anchor is not None
    assert {(sent.thread, sent.topic, sent.reply_to) for sent in told} == {("7", "news", command.anchor.split("@")[0])}
    assert world.home.server.sent == told, "nobody else hears of it"
    assert not world.note.note()


def test_where_the_command_is_gone_it_is_told_in_the_same_place_without_it(world: World) -> None:
    """C11"""
    life = world.home.start()
    command = world.ask(life, thread="7", topic="news")
    world.home.server.delete(command)
    world.restart(life)
    back = world.in_thread("7")[-1]
    assert (back.text, back.thread, back.topic, back.reply_to) == (words.BACK, "7", "news", None)


def test_a_chat_that_restarts_its_own_running_turn_gets_one_notice_and_it_is_the_answer_to_the_command(world: World) -> None:
    """C10, C11"""
    life = world.home.start(home_channels=(session_key(ANN), *HOMES))
    life.under_way("say:half|hang / say:whole")
    command = world.ask(life)
    world.restart(life, home_channels=(session_key(ANN), *HOMES))
    assert sorted(world.home.told()) == sorted([CUT, words.BACK, "whole"]) and world.home.told()[0] == CUT
    assert [sent.anchor for sent in world.home.sent() if sent.text != "whole"] == [command.anchor, command.anchor]
    assert not world.home.told(LOBBY)


def test_others_whose_turns_are_cut_by_it_are_told_and_home_channels_are_not(world: World) -> None:
    """C10, C12, C13"""
    life = world.home.start(home_channels=HOMES)
    life.under_way("say:half|hang / say:whole", chat=BOB, sender=BOB)
    asked = world.home.server.updates[-1].anchor
    world.ask(life)
    world.restart(life, home_channels=HOMES)
    assert [(sent.text, sent.anchor) for sent in world.home.sent(BOB)] == [(CUT, asked), ("whole", asked)]
    assert world.home.told() == [words.RESTARTING, words.BACK]
    assert not world.home.told(LOBBY)


def test_a_hand_over_that_was_asked_for_in_a_chat_tells_no_running_chat(world: World) -> None:
    """C10, C11"""
    world.restarted_by(cuts=False)
    old = world.home.start(home_channels=HOMES)
    old.under_way("say:half|sleep:20|say:, whole", chat=BOB, sender=BOB)
    old.under_way("say:mine|sleep:20|say:, whole")
    world.ask(old)
    new, retiring = hand_over(world.home, old, home_channels=HOMES)
    new.until(retiring.done)
    old.stop()
    new.rest()
    assert world.home.told(BOB) == ["half, whole"]
    assert world.home.told() == [words.RESTARTING, words.BACK, "mine, whole"]
    assert not world.home.told(LOBBY)


def test_that_it_failed_is_told_to_the_chat_that_asked_with_the_reason(world: World) -> None:
    """C11, C25"""
    world.restarted_by(cuts=False)
    life = world.home.start(home_channels=HOMES)
    command = world.ask(life)
    life.do(life.gateway.announcements.failed(world.asked[0], "The new process has no room."))
    life.rest()
    assert world.home.told() == [words.RESTARTING, "Holdfast did not restart. The new process has no room."]
    assert {sent.anchor for sent in world.home.sent()} == {command.anchor}
    life.stop()
    world.next(home_channels=HOMES)
    assert len(world.home.server.sent) == 2, "a later start is not the restart that was asked for"


def test_a_stop_that_comes_first_is_the_outcome_of_a_restart(world: World) -> None:
    """C11"""
    life = world.home.start()
    world.ask(life)
    life.do(life.gateway.stop(by=By.OPERATOR))
    life.die()
    world.next()
    assert world.home.told() == [words.RESTARTING, words.STOPPED_INSTEAD]
    assert not world.note.note()


def test_who_may_not_operate_is_told_so_and_nothing_restarts(world: World) -> None:
    """C11"""
    life = world.home.start()
    command = world.ask(life, sender="mallory")
    life.rest()
    assert [(sent.text, sent.anchor) for sent in world.home.sent()] == [(words.MAY_NOT_RESTART, command.anchor)]
    assert not world.asked and not world.note.note()


def test_where_nobody_can_restart_the_process_that_is_said(world: World) -> None:
    """C11"""
    world.home.restarts = None
    life = world.home.start()
    world.ask(life)
    life.rest()
    assert world.home.told() == [words.CANNOT_RESTART]


def test_a_restart_that_is_asked_for_in_the_first_moments_of_a_process_is_not_taken_for_the_one_that_started_it(world: World) -> None:
    """C9, C17: its note must still be there when the process has ended, or a container would stay down."""
    note = world.restarted_by(cuts=True)
    life = world.home.start()
    asked = life.gateway.announcements.request(By.OPERATOR)
    life.do(life.gateway.announcements.back())  # The process has only now come to look at the note.
    assert [one.id for one in note.note()] == [asked.id]
    life.die()
    life = world.home.start()
    life.pass_s(1)
    assert note.note() == []


def test_a_page_may_ask_and_is_told_in_its_conversation(world: World) -> None:
    """C10, C11"""
    life = world.home.start()
    session_id = life.open_page()
    other = life.open_page()
    life.post(other, "hang / say:whole")
    life.until(lambda: world.home.texts == ["hang / say:whole"])
    life.post(session_id, "/restart")
    assert len(world.asked) == 1
    life = world.restart(life)
    assert life.notices(session_id) == [words.RESTARTING, words.BACK]
    assert life.notices(other) == [CUT] and life.answers(other) == ["whole"]


# once


def test_a_command_that_is_delivered_twice_restarts_once(world: World) -> None:
    """C11, P1"""
    life = world.home.start()
    world.ask(life)
    world.home.server.repeats = lambda: True
    life.pass_s(2)
    world.home.server.repeats = lambda: False
    assert len(world.asked) == 1 and [request.id for request in world.note.note()] == [world.asked[0].id]
    world.restart(life)
    assert world.home.told() == [words.RESTARTING, words.BACK]


def test_a_command_that_was_never_confirmed_does_not_restart_again_after_the_restart(world: World) -> None:
    """C11, P6: no loop of restarts."""
    life = world.home.start()
    world.ask(life)
    world.home.server.confirmed.clear()
    life = world.restart(life)
    life.until(lambda: world.home.server.confirmed)
    world.restart(life)
    assert len(world.asked) == 1 and not world.note.note()
    assert world.home.told() == [words.RESTARTING, words.BACK]


def killed(folder: Path, at: float | None) -> tuple[World, float]:
    """Ann restarts it while Bob's turn runs, and the process is killed at a moment of its own time; whoever comes after it goes on. Gives
    when it ended, too.
    """
    with gateways.home(folder) as home:
        world = World(home, folder)
        world.obeys = True
        life = home.start(home_channels=HOMES)
        life.under_way("say:half|hang / say:whole", chat=BOB, sender=BOB)
        home.server.write(ANN, ANN, "/restart")
        if at is None:
            life.until(life.gateway.lifecycle.stopped.is_set)
        else:
            life.pass_s(at - life.loop.time())
        ended = life.loop.time()
        life.die()
        life = world.next(home_channels=HOMES)
        if life.gateway.lifecycle.stopped.is_set():  # The command had not been taken yet; it was brought again.
            life.die()
            life = world.next(home_channels=HOMES)
        assert life.gateway.state is GatewayState.RUNNING
    return world, ended


def test_whenever_the_process_is_killed_the_chat_that_asked_is_answered_once_and_told_once_that_it_is_back(tmp_path: Path) -> None:
    """C10, C11, C12, P1: at every write from the command to the end."""
    unhurt, ended = killed(make(tmp_path / "whole"), None)
    first = unhurt.begun_at - 0.005
    moments = [first + step * KILL_STEP_S for step in range(int((ended - first) / KILL_STEP_S) + 2)]
    seen = set()
    for number, at in enumerate(moments):
        world, _ = killed(make(tmp_path / str(number)), at)
        home = world.home
        assert home.told() == [words.RESTARTING, words.BACK], at
        assert {sent.anchor for sent in home.sent()} == {home.server.updates[-1].anchor}
        assert len(world.asked) <= 1 and not world.note.note(), at
        assert home.replies(BOB) == ["whole"] and home.told(BOB).count(CUT) == len(home.told(BOB)) - 1 <= 1, at
        assert not home.told(LOBBY), at
        seen.add((len(world.asked), home.told(BOB).count(CUT)))
    assert seen == {(1, 0), (1, 1), (0, 0)}, "kills fell before and after the telling, and between the record and the restart"


def test_whenever_the_next_process_is_killed_each_place_is_told_once_that_it_is_back(tmp_path: Path) -> None:
    """C11, C13, P4: at every write from its start to the telling."""
    noted = []
    for step in range(40):
        folder = make(tmp_path / str(step))
        with gateways.home(folder) as home:
            world = World(home, folder)
            life = home.start(home_channels=HOMES)
            world.ask(life)
            life.gateway.announcements.request(By.OPERATOR)
            life.stop("restart_timeout")
            life = home.start(home_channels=HOMES)
            life.pass_s(step * KILL_STEP_S)
            noted.append(len(world.note.note()))
            life.die()
            world.next(home_channels=HOMES)
            assert home.told() == home.told(LOBBY) == [words.RESTARTING, words.BACK], step
            assert not world.note.note()
    assert (noted[0], noted[-1]) == (2, 0), "kills fell before and after the note was put away"


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_note_whose_command_never_came_on_record_tells_nobody(world: World) -> None:
    """C11: killed after the note and before the record, the command is brought again."""
    life = world.home.start()
    session = life.say("hello")
    chat = Chat(session_key=session.session_key, session_id=session.session_id, anchor="anchor-9")
    world.note.keep([Request(id="m_never", by=By.CHAT, chat=chat)])
    life.die()
    world.next()
    assert world.home.told() == ["re: hello"] and not world.note.note()


def test_a_note_that_outlived_its_telling_tells_nobody_twice(world: World) -> None:
    """C11, C13: killed after the telling and before the note was put away."""
    life = world.home.start(home_channels=HOMES)
    world.ask(life)
    from_line = life.gateway.announcements.request(By.OPERATOR)
    noted = list(world.note.note())
    assert [request.by for request in noted] == [By.CHAT, By.OPERATOR] and from_line in noted
    life = world.restart(life, home_channels=HOMES)
    told = list(world.home.server.sent)
    world.note.keep(noted)
    life.die()
    world.next(home_channels=HOMES)
    assert world.home.server.sent == told and not world.note.note()
    assert world.home.told() == [words.RESTARTING, words.BACK]
    assert world.home.told(LOBBY) == [words.RESTARTING, words.BACK]


def test_a_note_that_is_damaged_keeps_nobody_from_serving_and_is_removed(world: World) -> None:
    """C13"""
    (world.folder / "restart-pending.json").write_text('{"requests": [{"id"')
    life = world.next()
    life.say("hello")
    assert world.home.told() == ["re: hello"]
    assert world.home.logged("the restart note is damaged, and removed")
    assert not (world.folder / "restart-pending.json").exists()
    world.ask(life)
    world.restart(life)
    assert world.home.told()[1:] == [words.RESTARTING, words.BACK]


# asked for elsewhere


@pytest.mark.parametrize("by", (By.OPERATOR, By.SERVICE))
def test_a_restart_from_elsewhere_tells_the_home_channels_before_and_after(world: World, by: By) -> None:
    """C10, C13"""
    life = world.home.start(home_channels=HOMES)
    life.under_way("say:half|hang / say:whole")
    life.gateway.announcements.request(by)
    world.restart(life, home_channels=HOMES)
    assert world.home.told(LOBBY) == [words.RESTARTING, words.BACK]
    assert world.home.told() == [CUT, "whole"]


def test_a_home_channel_that_could_not_be_told_of_the_restart_is_not_told_that_it_is_back(world: World) -> None:
    """C13: killed before it could say that it goes."""
    life = world.home.start(home_channels=HOMES)
    life.gateway.announcements.request(By.OPERATOR)
    life.die()
    world.next(home_channels=HOMES)
    assert world.home.told(LOBBY) == [] and not world.note.note()


def test_a_hand_over_from_elsewhere_tells_nobody_that_it_is_back_since_nobody_heard_it_go(world: World) -> None:
    """C10, C13"""
    world.restarted_by(cuts=False)
    old = world.home.start(home_channels=HOMES)
    old.under_way("say:half|sleep:20|say:, whole")
    old.gateway.announcements.request(By.OPERATOR)
    new, retiring = hand_over(world.home, old, home_channels=HOMES)
    new.until(retiring.done)
    old.stop()
    new.rest()
    assert world.home.told() == ["half, whole"] and world.home.told(LOBBY) == []
    assert not world.note.note()


@pytest.mark.parametrize(("by", "homes_hear"), ((By.OPERATOR, True), (By.SERVICE, True), (By.FAULT, False)))
def test_a_stop_is_told_to_those_it_cuts_and_a_later_start_is_told_to_nobody(world: World, by: By, homes_hear: bool) -> None:
    """C10, C13"""
    life = world.home.start(home_channels=HOMES)
    life.under_way("say:half|hang / say:whole")
    life.do(life.gateway.stop(by=by))
    life.die()
    world.next(home_channels=HOMES)
    assert world.home.told() == [words.STOPPING_INTERRUPTS, "whole"]
    assert world.home.told(LOBBY) == ([words.STOPPING] if homes_hear else [])


def test_with_nothing_running_and_no_home_channel_nobody_is_told(world: World) -> None:
    """C12, E5"""
    life = world.home.start()
    life.say("hello")
    life.gateway.announcements.request(By.OPERATOR)
    world.restart(life)
    assert world.home.told() == ["re: hello"]


def test_a_home_channel_whose_platform_is_not_there_is_named_in_the_log_and_owed_nothing(world: World) -> None:
    """C13"""
    life = world.home.start(home_channels=("agent:main:elsewhere:dm:1",))
    life.do(life.gateway.stop(by=By.OPERATOR))
    life.die()
    life = world.next()
    assert life.do(life.store.counts()).outbox == 0
    assert [entry["home_channel"] for entry in world.home.logged("no such platform is connected")] == ["agent:main:elsewhere:dm:1"]


# when it is said


def test_the_notice_goes_out_before_the_agent_is_interrupted_and_the_platform_left(world: World) -> None:
    """C10, C1"""
    life = world.home.start()
    life.under_way("say:half|hang")
    life.stop("restart_timeout")
    seen = world.home.edge.seen
    assert seen.index(f"sent {CUT}") < seen.index("platform closed")
    assert [entry["step"] for entry in world.home.logged("stop")][:4] == ["record", "announce", "drain", "interrupt turns"]


def test_a_notice_behind_a_slow_reply_still_goes_out_before_the_platform_is_left(world: World) -> None:
    """C10"""
    life = world.home.start()
    world.home.server.takes_s = 1.5
    life.write("say:first")
    life.under_way("say:half|hang")
    life.stop("restart_timeout")
    assert world.home.told() == ["first", CUT]


def test_with_a_window_all_are_told_at_its_beginning_that_what_is_not_done_in_it_is_cut(world: World) -> None:
    """C10, C5"""
    life = world.home.start(drain_timeout_s=30)
    life.under_way("say:soon|sleep:5|say:, done")
    life.under_way("say:half|hang / say:whole", chat=BOB, sender=BOB)
    life.stop("restart_timeout")
    told = words.RESTARTING_INTERRUPTS_IN_30_S
    assert world.home.told() == [told, "soon, done"] and world.home.told(BOB) == [told]


def test_a_platform_that_does_not_answer_holds_the_stop_up_no_longer_than_it_may(world: World) -> None:
    """C10, C23, P4: and the notice is not lost."""
    life = world.home.start()
    life.under_way("say:half|hang / say:whole")
    world.home.edge.hangs.add("sending")
    began = life.loop.time()
    life.stop("restart_timeout")
    assert life.loop.time() - began < 10
    world.home.edge.hangs.clear()
    world.next()
    assert world.home.told() == [CUT, "whole"]


def test_whoever_serves_tells_the_chats_of_processes_that_retire_and_they_are_told_once(world: World) -> None:
    """C10, C24"""
    old = world.home.start()
    old.under_way("say:half|hang / say:whole")
    new, _ = hand_over(world.home, old)
    new.do(new.gateway.stop(by=By.OPERATOR))
    assert world.home.told() == [STOPPING]
    old.do(old.gateway.stop())
    old.die()
    new.die()
    assert not world.home.logged("a step of the stop failed")
    world.next()
    assert world.home.told() == [STOPPING, "whole"]


def test_a_retiring_process_that_stops_first_gives_the_reason_that_its_turns_show(world: World) -> None:
    """C10, C24, C30: the home channels hear of it from the process that serves."""
    old = world.home.start(home_channels=HOMES)
    old.under_way("say:half|hang / say:whole")
    new, _ = hand_over(world.home, old, home_channels=HOMES)
    old.do(old.gateway.stop(by=By.SERVICE))
    old.die()
    new.rest()
    new.pass_s(5)
    assert world.home.told() == [STOPPING, "whole"] and not world.home.told(LOBBY)


def hand_over(home: Home, old: Life, **settings: Any) -> tuple[Life, "asyncio.Task[None]"]:
    """The successor serves; the task is over when the last turn of the old one is."""
    old.gateway.hand_over.begin()
    old.do(old.gateway.hand_over.give_way())
    new = home.start(beside=old, **settings)
    retiring = old.loop.create_task(old.gateway.hand_over.retire())
    old.pass_s(0.1)
    return new, retiring
