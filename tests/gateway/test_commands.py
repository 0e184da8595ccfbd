"""What people ask of the gateway itself in the middle of a conversation, in a chat and on a page."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.commands import COMMANDS
from holdfast.core.errors import LaneFull, NothingToStop
from holdfast.core.events import StopRequested
from holdfast.core.history import User
from holdfast.core.policy import Rules, parse
from holdfast.core.sessions import Session
from holdfast.gateway.agents import Agents
from holdfast.gateway.edges import Edges
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.host import Host
from holdfast.gateway.settings import Settings
from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.agents import AgentRequest
from holdfast.ports.owners import Owner
from holdfast.process.system import RandomIds, SystemClock
from holdfast.sandbox import Mode, Sandbox
from holdfast.spool import FolderSpool
from holdfast.store import open_store
from holdfast.tools.confinement import Confinement
from holdfast.tools.surroundings import Surroundings
from holdfast.tools.terminal import Terminal
from holdfast.tools.workspaces import Workspaces
from holdfast.web.frames import encode
from tests import words
from tests.fakes.platform import Shelf
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life, ScriptAgent, eventually

STOP_WITHIN_S = 5.0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


class Talk:
    """One conversation, in a chat or on a page, in the same words."""

    def __init__(self, home: Home, life: Life, place: str) -> None:
        self._home, self.life, self.in_chat = home, life, place == "chat"
        self.session_id = "" if self.in_chat else life.open_page()

    def write(self, text: str) -> Session:
        if self.in_chat:
            self.session_id = self.life.write(text).session_id
        else:
            self.session_id = self.life.post(self.session_id, text)
        return self.session

    def say(self, text: str) -> Session:
        self.write(text)
        return self.life.rest(self.session_id)

    def under_way(self, text: str) -> Session:
        self.write(text)
        self.life.until(lambda: text in self._home.texts)
        self.life.pass_s(1)
        return self.session

    @property
    def session(self) -> Session:
        return self.life.session(self.session_id)

    @property
    def replies(self) -> list[str]:
        """What the gateway itself has answered here."""
        return self.life.notices(self.session_id)


@pytest.fixture(params=["chat", "page"])
def talk(home: Home, request: pytest.FixtureRequest) -> Talk:
    return Talk(home, home.start(), request.param)


# each of them


def test_help_lists_every_command(home: Home, talk: Talk) -> None:
    """A22: what there is to ask for can be asked."""
    talk.say("/help")
    assert len(talk.replies) == 1
    assert [line.split(" ")[0] for line in talk.replies[0].splitlines()] == [f"/{name}" for name in COMMANDS]
    assert home.texts == []


def test_a_command_is_kept_as_one_and_never_shown_to_the_agent(home: Home, talk: Talk) -> None:
    """P1, P6"""
    talk.say("hello")
    talk.say("/status")
    talk.say("again")
    assert home.texts == ["hello", "again"]
    assert [item.text for item in home.heard[-1].history] == ["hello", "re: hello", "again"]
    [command] = [message for message in talk.life.transcript(talk.session_id).messages if message.status == "command"]
    assert (command.role, command.text, command.turn_id) == ("user", "/status", None)


def test_a_chat_is_answered_in_reply_to_its_command_and_once(home: Home) -> None:
    """A21, P4"""
    life = home.start()
    life.say("/help")
    life.pass_s(10)
    assert [(sent.text, sent.anchor) for sent in home.sent()] == [(words.HELP, home.server.updates[0].anchor)]


def test_status_says_what_goes_on(home: Home, talk: Talk) -> None:
    """B14"""
    talk.under_way("hang")
    talk.write("second")
    talk.write("/status")
    assert talk.replies == ["This conversation is running.\n1 message is waiting."]


def test_status_names_the_last_decision(home: Home) -> None:
    """R9"""
    home.start().cut("hang / say:done")
    life = home.start()
    life.rest()
    life.say("/status")
    assert home.told()[-1] == "This conversation is idle.\nLast decision: rule R9, interrupted by a crash 1 s earlier."


def test_sessions_lists_the_conversations_of_a_chat_by_number(home: Home, talk: Talk) -> None:
    """A22"""
    talk.say("first words")
    talk.say("/new")
    talk.say("other words")
    talk.say("/sessions")
    assert talk.replies[-1] == "2. other words (this one)\n1. first words\n\n/resume NUMBER goes back to one of them."


def test_new_begins_a_conversation_and_keeps_the_old_one(home: Home, talk: Talk) -> None:
    """A22"""
    first = talk.say("hello").session_id
    second = talk.say("/new").session_id
    assert first != second and talk.replies == [words.BEGUN["asked"]]
    assert (talk.session.current, talk.life.session(first).current) == (True, False)
    assert (talk.session.was_auto_reset, talk.session.auto_reset_reason) == (False, None)
    talk.say("again")
    assert [item.text for item in home.heard[-1].history] == ["again"]
    assert talk.life.answers(first) == ["re: hello"]


def test_new_in_an_empty_conversation_says_so_and_changes_nothing(home: Home, talk: Talk) -> None:
    """A22"""
    first = talk.say("/new").session_id
    assert talk.say("/new").session_id == first
    assert talk.replies == [words.ALREADY_NEW] * 2


def test_new_stops_what_runs_first(home: Home, talk: Talk) -> None:
    """A22, A21"""
    old = talk.under_way("say:half|hang").session_id
    talk.say("/new")
    talk.life.until(lambda: talk.life.outcomes(old) == ["cancelled"], within_s=STOP_WITHIN_S)
    assert talk.replies == [words.BEGUN["asked"]]


@pytest.mark.parametrize("by", ["number", "id", "nothing"])
def test_resume_goes_back_to_an_earlier_conversation(home: Home, talk: Talk, by: str) -> None:
    """A22"""
    first = talk.say("hello").session_id
    talk.say("/new")
    talk.say("other")
    assert talk.say({"number": "/resume 1", "id": f"/resume {first}", "nothing": "/resume"}[by]).session_id == first
    assert talk.replies == ["Back in the conversation “hello”."]
    talk.say("again")
    assert [item.text for item in home.heard[-1].history if isinstance(item, User)] == ["hello", "again"]


def test_resume_continues_work_that_was_cut_in_a_conversation_left_since(home: Home, talk: Talk) -> None:
    """A22, R1"""
    first = talk.under_way("hang / say:done").session_id
    talk.life.do(talk.life.gateway.suspend(first))
    talk.life.pass_s(1)
    assert talk.say("other").session_id != first
    talk.write("/resume 1")
    talk.life.rest(first)
    assert talk.life.answers(first) == ["done"]
    assert talk.life.notices(first) == ["Back in the conversation “hang / say:done”. The interrupted work continues."]


@pytest.mark.parametrize(("work", "goes_on"), [("hang", "is already working"), ("ask:name", "is waiting for your answer")])
def test_resume_without_a_name_never_leaves_work_that_goes_on(home: Home, talk: Talk, work: str, goes_on: str) -> None:
    """A22, P8: typed twice, or after it was resumed by itself, it stops nothing."""
    talk.say("hello")
    talk.say("/new")
    busy = talk.under_way(work)
    assert talk.write("/resume").session_id == busy.session_id
    assert talk.replies[-1] == f"There is nothing to resume: this conversation {goes_on}."
    assert talk.session.open_turn and not talk.session.stop_requested


def test_resume_of_another_conversation_says_that_work_was_stopped(home: Home, talk: Talk) -> None:
    """A20, A22"""
    talk.say("hello")
    talk.say("/new")
    talk.under_way("hang")
    talk.say("/resume 1")
    assert talk.replies[-1] == "Back in the conversation “hello”. What was running in the other conversation was stopped."


def test_half_a_character_ends_no_conversation(home: Home, talk: Talk) -> None:
    """P3, P7: what cannot be stored as it is, is stored with a sign for what is missing; the turn ends once, and says how."""
    session = talk.say("half")
    [turn] = talk.life.transcript(session.session_id).turns
    assert (turn.outcome, turn.attempt, turn.error) == ("failed", 1, "Failure: with \ufffd")
    assert talk.life.answers(session.session_id) == ["\ufffd then"]


def test_resume_with_nothing_to_resume_says_so(home: Home, talk: Talk) -> None:
    """A22"""
    talk.say("hello")
    talk.say("/resume")
    talk.say("/resume 1")
    talk.say("/resume 7")
    assert talk.replies == [words.NOTHING_TO_RESUME, words.ALREADY_HERE, "There is no conversation '7' here. /sessions lists them."]
    assert home.texts == ["hello"]


def test_a_conversation_of_another_chat_cannot_be_resumed_from_here(home: Home) -> None:
    """A22"""
    life = home.start()
    other = life.say("a secret", chat="bob", sender="bob").session_id
    life.say("hello")
    life.say(f"/resume {other}")
    assert home.told()[-1] == f"There is no conversation {other!r} here. /sessions lists them."


def test_queue_puts_a_message_behind_the_running_turn(home: Home, talk: Talk) -> None:
    """A21"""
    talk.under_way("sleep:5|say:done")
    talk.write("/queue second")
    talk.life.rest(talk.session_id)
    assert (home.texts, talk.life.answers(talk.session_id)) == (["sleep:5|say:done", "second"], ["done", "re: second"])


def test_queue_does_not_answer_an_open_question(home: Home, talk: Talk) -> None:
    """R5"""
    assert talk.say("ask:your name").state == "waiting"
    talk.write("/queue second")
    talk.life.pass_s(2)
    assert (talk.session.state, talk.session.queued) == ("waiting", 1)
    talk.say("Bob")
    assert talk.life.answers(talk.session_id) == ["told Bob", "re: second"]


def test_queue_without_words_asks_for_them(home: Home, talk: Talk) -> None:
    """A21"""
    talk.say("/queue")
    assert (talk.replies, home.texts) == ([words.QUEUE_WHAT], [])


@pytest.mark.parametrize("text", ["/nosuch", "/nosuch with words", "/NoSuch"])
def test_an_unknown_command_is_named_and_nothing_else_happens(home: Home, talk: Talk, text: str) -> None:
    """P6"""
    talk.say(text)
    told = "There is no command /nosuch. /help lists the commands. To send it to the agent, begin with a space."
    assert (talk.replies, home.texts) == ([told], [])


@pytest.mark.parametrize("text", [" /stop", "/usr/bin/env", "/", "// stop", "say /stop", "/1"])
def test_what_only_looks_like_a_command_goes_to_the_agent(home: Home, talk: Talk, text: str) -> None:
    """P1"""
    talk.say(text)
    assert (home.texts, talk.replies) == ([text], [])


@pytest.mark.parametrize("text", ["/status@holdfast", "/STATUS", "/status  ", "/status\n"])
def test_a_command_may_be_written_in_several_ways(home: Home, talk: Talk, text: str) -> None:
    """A21"""
    talk.say(text)
    assert (talk.replies, home.texts) == (["This conversation is idle."], [])


# stop


def test_stop_ends_the_turn_and_keeps_what_waits(home: Home, talk: Talk) -> None:
    """A21"""
    session_id = talk.under_way("say:half|hang").session_id
    talk.write("second")
    talk.write("third")
    talk.write("/stop")
    session = talk.life.rest(talk.session_id)
    assert talk.replies == [words.STOPPED_TWO_WAIT]
    assert talk.life.outcomes(talk.session_id) == ["cancelled", "completed", "completed"]
    assert talk.life.answers(talk.session_id) == ["half", "re: second", "re: third"]
    assert (session.session_id, session.suspended, session.resume_pending) == (session_id, False, False)
    assert [request.note for request in home.heard] == [None] * 3


def test_stop_ends_a_waiting_turn(home: Home, talk: Talk) -> None:
    """A21"""
    talk.say("ask:your name")
    talk.say("/stop")
    assert talk.life.outcomes(talk.session_id) == ["cancelled"]
    talk.say("Bob")
    assert (home.texts[-1], home.note) == ("Bob", None)


def test_stop_ends_work_that_was_left(home: Home) -> None:
    """A21, R0"""
    home.start().cut("hang")
    life = home.start(auto_resume=False)
    life.rest()
    life.say("/stop")
    life.until(lambda: life.outcomes() == ["cancelled"])
    life.decided("R0", "cancelled")
    assert not life.session().resume_pending
    life.say("next")
    assert home.note is None


def test_a_hundred_stops_at_once_stop_one_turn(home: Home) -> None:
    """A21: each is for the turn that ran when it was accepted, by the API and by words on the page."""
    life = home.start()
    page = life.open_page()
    life.post(page, "say:half|hang")
    life.until(lambda: home.texts)
    life.post(page, "sleep:1|say:done")

    async def stop_by_request() -> str:
        try:
            return (await life.gateway.stop_turn(page, by="owner", client_id=None)).turn_id or ""
        except NothingToStop as refusal:
            return refusal.code

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(work() for _ in range(50) for work in (stop_by_request, stop_by_words)))

    async def stop_by_words() -> None:
        await life.gateway.post(page, "/stop", client_id=None)

    named = {answer for answer in life.do(all_at_once()) if answer}
    life.rest(page)
    assert life.outcomes(page) == ["cancelled", "completed"]
    assert life.answers(page) == ["half", "done"]
    assert life.transcript(page).turns[0].id in named
    assert named <= {life.transcript(page).turns[0].id, "nothing_to_stop"}
    assert set(life.notices(page)) <= {
        words.STOPPED_ONE_WAITS,
        words.ALREADY_ENDED,
        words.ALREADY_ENDED_ANOTHER_RUNS,
    }


def test_stops_written_into_a_chat_at_once_stop_one_turn(home: Home) -> None:
    """A21: they are taken one after the other, the later ones when the next turn runs; nobody in the chat can know that yet."""
    life = home.start()
    life.under_way("say:half|hang")
    life.write("sleep:5|say:done")
    home.server.takes_s = 0.5
    for _ in range(20):
        home.write("/stop")
    life.rest()
    assert life.outcomes() == ["cancelled", "completed"]
    assert life.answers() == ["half", "done"]
    stops = [event.event for event in life.events() if event.kind == "stop.requested"]
    assert len(stops) == 20
    assert {stop.turn_id for stop in stops if isinstance(stop, StopRequested)} == {life.transcript().turns[0].id}
    assert words.ALREADY_ENDED_ANOTHER_RUNS in home.told()


def test_a_stop_written_after_the_last_one_was_answered_stops_what_runs_then(home: Home) -> None:
    """A21, P8"""
    life = home.start()
    life.under_way("hang")
    life.write("say:now|hang")
    life.write("/stop")
    life.until(lambda: home.told() and home.texts[-1] == "say:now|hang")
    life.write("/stop")
    life.rest()
    assert home.told() == [words.STOPPED_ONE_WAITS, "Stopped.", "now"]
    assert life.outcomes() == ["cancelled", "cancelled"]


def test_a_chat_whose_replies_are_stuck_can_still_stop_what_runs(home: Home) -> None:
    """P8: a stop always wins."""
    life = home.start()
    life.under_way("hang")
    life.write("say:now|hang")
    home.server.moods = lambda: "refused"
    life.write("/stop")
    life.until(lambda: home.texts[-1] == "say:now|hang")
    life.pass_s(11)
    life.write("/stop")
    life.until(lambda: life.outcomes() == ["cancelled", "cancelled"], within_s=STOP_WITHIN_S)


def test_stop_with_nothing_running_says_so(home: Home, talk: Talk) -> None:
    """A21"""
    talk.say("hello")
    talk.say("/stop")
    assert talk.replies == [words.NOTHING_TO_STOP]


def test_stop_does_not_wait_for_a_tool_that_does_not_end(home: Home, talk: Talk) -> None:
    """A21"""
    talk.under_way("call:stubborn")
    talk.write("/stop")
    talk.life.until(lambda: talk.life.outcomes(talk.session_id) == ["cancelled"], within_s=STOP_WITHIN_S)
    talk.say("next")
    assert home.note is None


async def test_stop_ends_the_process_of_a_running_tool(tmp_path: Path) -> None:
    """A21: a real process, in real time."""
    heard: list[AgentRequest] = []
    store = await open_store(tmp_path, now=SystemClock().now)
    owner = await store.register_owner(Owner(name="us", pid=os.getpid(), started_at=1, boot_id="b"))
    none = Sandbox(mode=Mode.NONE, network=True, hidden=tmp_path)
    terminal = Terminal(
        home=tmp_path,
        owner="us",
        surroundings=Surroundings(
            workspaces=Workspaces(tmp_path, folder=tmp_path / "work"), confinement=Confinement(lambda: none), environment=os.environ
        ),
    )
    clock = SystemClock()
    gateway = Gateway(
        store=store,
        host=Host(
            clock=clock,
            ids=RandomIds(),
            liveness=_Lives(),
            owner=owner,
            name="us",
        ),
        edges=Edges(
            agents=Agents(ScriptAgent(heard)),
            tools=Toolbox({terminal.name: terminal}),
            platforms={},
            files=Shelf(store),
            spool=FolderSpool(tmp_path),
            encode=encode,
        ),
        settings=Settings(policy=Rules(allow=(parse("terminal"),))),
    )
    await gateway.start()
    try:
        page = (await gateway.create_session()).session_id
        await gateway.post(page, "call:terminal trap '' TERM; echo $$; while true; do sleep 1; done", client_id=None)

        async def output() -> str:
            messages = (await gateway.store.transcript(await gateway.session(page))).messages
            return "".join(call.output for message in messages for call in message.tool_calls)

        await eventually(store, output)
        process, began = int(await output()), clock.monotonic()
        await gateway.post(page, "next", client_id=None)
        await gateway.post(page, "/stop", client_id=None)

        async def ended() -> bool:
            turns = (await gateway.store.transcript(await gateway.session(page))).turns
            return [turn.outcome for turn in turns] == ["cancelled", "completed"]

        await eventually(store, ended)
        assert clock.monotonic() - began < STOP_WITHIN_S
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
        assert [request.note for request in heard] == [None, None]
    finally:
        await gateway.stop()
        await store.aclose()


class _Lives:
    def alive(self, name: str) -> bool:
        return True


# deliveries


@pytest.mark.parametrize("text", ["/new", "/stop", "/help", "/nosuch", "/resume"])
def test_the_same_update_delivered_twice_is_one_command(home: Home, text: str) -> None:
    """A22, P1"""
    life = home.start()
    life.say("hello")
    life.say("/new")
    life.say("other")
    life.stop()
    told = len(home.told())
    life = home.start()
    again = iter([True])
    home.server.repeats = lambda: next(again, False)
    life.say(text)
    life.pass_s(5)
    assert next(again, None) is None, "it was not delivered a second time"
    assert len(home.told()) == told + 1
    assert [message.text for message in life.transcript().messages if message.status == "command"].count(text) == 1


def test_the_same_words_in_another_update_are_another_command(home: Home) -> None:
    """A22"""
    life = home.start()
    life.say("/help")
    life.say("/help")
    assert home.told() == [words.HELP] * 2


def test_one_message_too_many_is_refused_aloud(home: Home) -> None:
    """P1: as many wait as the setting says, the next one does not."""
    life = home.start(max_waiting=10)
    life.under_way("hang / say:done")
    for number in range(10):
        home.write(f"number {number}")
    life.write("one too many")
    assert life.session().queued == 10
    life.until(lambda: home.told())
    told = "10 messages are already waiting here, so this one was not accepted. Wait for an answer, or send /stop, then send it again."
    assert [(sent.text, sent.anchor) for sent in home.sent()] == [(told, home.server.updates[-1].anchor)]
    assert [message.text for message in life.transcript().messages if message.status == "command"] == ["one too many"]
    life.write("/stop")
    life.rest()
    assert len(home.texts) == 11 and "one too many" not in home.texts
    assert "number 0" in home.texts[1] and home.texts[-1] == "number 9"


def test_one_message_too_many_is_refused_on_a_page(home: Home) -> None:
    """P1"""
    life = home.start(max_waiting=1)
    page = life.open_page()
    life.post(page, "hang")
    life.pass_s(1)
    life.post(page, "second")
    with pytest.raises(LaneFull):
        life.post(page, "third")
    with pytest.raises(LaneFull):
        life.post(page, "/queue third")
    life.post(page, "/stop")
    life.rest(page)
    assert home.texts == ["hang", "second"]


def test_a_command_of_somebody_who_is_not_allowed_is_not_heard(home: Home) -> None:
    """A21"""
    home.server.banned.add("eve")
    life = home.start()
    life.under_way("hang")
    life.write("/stop", chat=ANN, sender="eve")
    life.pass_s(5)
    assert life.session().state == "running"
    assert [told.partition(".")[0] for told in home.told()] == ["You are not allowed to talk to this agent"]
