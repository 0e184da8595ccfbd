"""An agent that is another program, over lives of the gateway and of its own: it does not notice ours, and its own are told honestly."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.agents.acp import AcpAgent, Ground, KeptAgents, Program
from holdfast.core import events as e
from holdfast.core.effects import Effect
from holdfast.core.plans.answer import Answer
from holdfast.core.redaction import NO_SECRETS
from holdfast.core.retention import Limits
from holdfast.ports.agents import Agent
from holdfast.process.system import RandomIds
from tests.fakes.acp_machine import AcpMachine
from tests.fakes.loop import Crash
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life

WHOLE = "think hm|say one|tool ls|say two|permit rm|think so|sleep 0.1|say three"


class Wired:
    """A home whose agent is another program on a machine of its own."""

    def __init__(self, home: Home, folder: Path, *can: str) -> None:
        self.home, self.machine, self._folder = home, AcpMachine(*can), folder
        home.agent, home.agent_processes = self._agent, lambda life: self.kept

    def _agent(self, life: Life) -> Agent:
        self.kept = KeptAgents(self.machine.keepers(lambda: self.home_time(life)), clock=life.clock, idle_s=60.0)
        ground = Ground(kept=self.kept, ids=RandomIds(), folder=lambda session, chosen: self._folder, read=_no_blob, secrets=NO_SECRETS)
        return AcpAgent(Program(name="acp:scripted", words=("scripted",), environment={}), ground)

    def kill(self, life: Life) -> None:
        """Its one process."""
        [name] = self.machine.running
        life.do(self.kept.keepers.kill(name))

    def deeds_after(self, life: Life, seconds: float) -> list[str]:
        """What they have done by then."""
        life.pass_s(seconds)
        for name in self.machine.running:
            life.do(self.kept.keepers.look(name))
        return self.machine.deeds

    @staticmethod
    def home_time(life: Life) -> float:
        return life.clock.now() / 1000


async def _no_blob(digest: str) -> bytes:
    raise AssertionError(f"nobody reads {digest}")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


@pytest.fixture
def wired(home: Home, tmp_path: Path) -> Wired:
    return Wired(home, tmp_path / "work")


def posted(life: Life, text: str) -> str:
    page = life.open_page()
    life.post(page, text)
    return page


def ask(life: Life, text: str) -> str:
    page = posted(life, text)
    life.rest(page)
    return page


def begun(life: Life, text: str) -> str:
    """A conversation whose agent has said "one" and is at work."""
    page = posted(life, text)
    life.until(lambda: life.answers(page) == ["one"])
    return page


def over_deaths(folder: Path, moment: str, *can: str, begin: Callable[[Life, Wired], str]) -> Iterator[tuple[int, Life, str, Wired]]:
    """The same turn from its beginning, again and again: each time the gateway dies one commit later, until it does not come to that any
    more. Gives it once it rests.
    """
    for number in itertools.count(1):
        place = folder / str(number)
        place.mkdir()
        with gateways.home(place) as home:
            wired = Wired(home, place / "work", *can)
            life = home.start()
            page = begin(life, wired)
            life.dies, died = (moment, life.commits + number), False
            try:
                life.rest(page)
            except Crash:
                life, died = home.start(), True
                life.rest(page)
            life.dies = None
            yield number, life, page, wired
        if not died:
            return


def reads(life: Life, page: str) -> list[e.AgentRead]:
    return [item.event for item in life.events(page) if isinstance(item.event, e.AgentRead)]


def approve(life: Life, page: str, verdict: str = "approve", scope: str = "once") -> None:
    [question] = life.transcript(page).questions
    life.do(life.gateway.judge(question.question_id, Answer(by="owner", verdict=verdict, scope=scope)))


def test_what_it_says_and_does_is_the_answer_with_calls_that_are_reported(home: Home, wired: Wired) -> None:
    """P5: nobody here runs, repeats or judges them."""
    life = home.start()
    page = ask(life, "think hm|say I look.|tool ls|say There is|say  one file.")
    assert life.answers(page) == ["I look.\n\nThere is one file."] and life.outcomes(page) == ["completed"]
    [call] = life.transcript(page).calls
    assert (call.name, call.arguments, call.effect, call.outcome, call.result) == (
        "execute", {"command": "ls"}, Effect.REPORTED, "done", "ls was done",
    )  # fmt: skip
    assert wired.machine.prompts == [["think hm|say I look.|tool ls|say There is|say  one file."]]


def thoughts(life: Life, page: str) -> list[tuple[str, bool]]:
    transcript = life.transcript(page)
    return [(each.text, each.kept) for each in transcript.thoughts_of(transcript.turns[-1].id)]


def test_what_it_thought_stays_when_the_turn_has_ended(home: Home, wired: Wired) -> None:
    """P7"""
    life = home.start()
    page = ask(life, "think Let me see.|say one|think  Hm.|permit rm|think Well.|say two")
    assert thoughts(life, page) == [("Let me see. Hm.", False)]
    approve(life, page)
    life.rest(page)
    assert life.outcomes(page) == ["completed"] and thoughts(life, page) == [("Let me see. Hm.Well.", True)]


def test_turns_of_a_conversation_share_a_process_and_those_of_others_do_not(home: Home, wired: Wired) -> None:
    life = home.start()
    page = ask(life, "say one")
    life.post(page, "say two")
    life.rest(page)
    ask(life, "say three")
    assert len(wired.machine.running) == 2 and wired.machine.prompts == [["say one"], ["say two"], ["say three"]]


@pytest.mark.parametrize(
    ("verdict", "scope", "chosen"), [("approve", "once", "once"), ("approve", "session", "always"), ("deny", "once", "no")]
)
def test_a_permission_is_an_approval_that_waits_over_a_death_and_gives_what_was_offered(
    home: Home, wired: Wired, verdict: str, scope: str, chosen: str
) -> None:
    """R5, P5: no rule of ours is made; the agent keeps that for itself."""
    life = home.start()
    page = ask(life, "permit rm|say done")
    assert life.session(page).state == "waiting"
    [question] = life.transcript(page).questions
    assert (question.form, question.call is not None and question.call.arguments) == ("approval", {"command": "rm"})
    life.die()
    home.later(3000)
    life = home.start()
    approve(life, page, verdict, scope)
    life.rest(page)
    assert wired.machine.permissions == [f"rm {chosen}"] and wired.machine.deeds == (["rm"] if verdict == "approve" else [])
    assert life.answers(page) == [f"rm: {chosen}.done"] or life.answers(page)[0].startswith(f"rm: {chosen}.")
    assert life.do(life.gateway.rules()) == [] and len(wired.machine.running) == 1


@pytest.mark.parametrize("moment", ["before", "after"])
def test_over_a_death_of_ours_at_each_commit_the_agent_notices_nothing(tmp_path: Path, moment: str) -> None:
    """P3, P5, P7: prompted once, each deed done once, each permission asked for once, and the answer whole."""
    for number, life, page, wired in over_deaths(tmp_path, moment, begin=lambda life, _: posted(life, WHOLE)):
        assert life.session(page).state == "waiting", (number, life.turn(page), life.answers(page))
        approve(life, page)
        life.rest(page)
        assert life.answers(page) == ["one\n\ntwo\n\nrm: once.three"], (number, life.answers(page))
        assert life.outcomes(page) == ["completed"] and wired.machine.deeds == ["ls", "rm"]
        assert wired.machine.permissions == ["rm once"] and len(wired.machine.prompts) == 1
        assert "".join(text for text, kept in thoughts(life, page) if kept) == "hmso", (number, thoughts(life, page))
    assert number > 9


def test_it_goes_on_while_we_are_away_and_what_it_did_is_told_after(home: Home, wired: Wired) -> None:
    """P7"""
    life = home.start()
    page = begun(life, "say one|sleep 5|tool ls|say two")
    life.die()
    home.later(60)
    life = home.start()
    life.rest(page)
    assert life.answers(page) == ["one\n\ntwo"] and wired.machine.deeds == ["ls"] and len(wired.machine.prompts) == 1
    assert {read.how for read in reads(life, page)} == {"new"}


def test_a_stop_ends_its_work_and_its_process_answers_the_next_message(home: Home, wired: Wired) -> None:
    """A21"""
    life = home.start()
    page = begun(life, "say one|sleep 100|tool ls")
    life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
    life.until(lambda: life.outcomes(page) == ["cancelled"], within_s=5)
    life.post(page, "say two")
    life.rest(page)
    assert life.answers(page)[-1] == "two" and wired.machine.deeds == [] and len(wired.machine.running) == 1


def test_a_turn_that_was_set_aside_is_settled_before_the_next_prompt(home: Home, wired: Wired) -> None:
    """R6: what the agent still asks for has nobody any more."""
    life = home.start(resume_window_s=1.0)
    page = begun(life, "say one|sleep 1|permit rm|say two")
    life.die()
    home.later(100)
    life = home.start(resume_window_s=1.0)
    life.until(lambda: life.outcomes(page) == ["set_aside"])
    life.post(page, "say three")
    life.rest(page)
    assert life.answers(page)[-1] == "three" and wired.machine.permissions == ["rm cancelled"] and wired.machine.deeds == []


@pytest.mark.parametrize("can", [(), ("slow",)])
def test_a_stop_that_was_acknowledged_before_a_death_ends_its_work_after_it(home: Home, tmp_path: Path, can: tuple[str, ...]) -> None:
    """A21, R0: nobody runs the turn any more, and its agent works on; one that does not listen is killed."""
    wired = Wired(home, tmp_path / "work", *can)
    life = home.start()
    page = begun(life, "say one|sleep 30|tool ls")
    life.dies = "after", life.commits + 1
    with pytest.raises(Crash):
        life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
    life = home.start()
    life.until(lambda: life.outcomes(page) == ["cancelled"])
    assert wired.deeds_after(life, 40) == []
    life.post(page, "say two")
    life.rest(page)
    assert life.answers(page)[-1] == "two" and len(wired.machine.running) == 1 + len(can)


def test_a_turn_that_was_set_aside_leaves_nobody_at_work(home: Home, wired: Wired) -> None:
    """R6, P5"""
    life = home.start(resume_window_s=1.0)
    page = begun(life, "say one|sleep 130|tool ls")
    life.die()
    home.later(100)
    life = home.start(resume_window_s=1.0)
    life.until(lambda: life.outcomes(page) == ["set_aside"])
    assert wired.deeds_after(life, 40) == []


def test_a_suspended_conversation_leaves_nobody_at_work_and_a_resume_continues(home: Home, tmp_path: Path) -> None:
    """R1, P5: the process died first, so that no attempt was there to end the agent's work."""
    wired = Wired(home, tmp_path / "work")
    life = home.start(auto_resume=False)
    page = life.open_page()
    life.post(page, "say one|sleep 30|tool ls|say two")
    life.until(lambda: life.answers(page) == ["one"])
    life.die()
    life = home.start(auto_resume=False)
    life.do(life.gateway.suspend(page))
    assert wired.deeds_after(life, 60) == [] and len(wired.machine.prompts) == 1
    life.die()
    life = home.start()
    assert wired.deeds_after(life, 60) == [] and len(wired.machine.prompts) == 1
    life.do(life.gateway.resume_session(page, by="owner", client_id=None))
    life.rest(page)
    assert life.outcomes(page) == ["completed"] and wired.machine.deeds == ["ls"] and len(wired.machine.running) == 1
    assert "it now continues" in wired.machine.prompts[1][0]


def test_one_that_is_suspended_while_nobody_serves_is_stopped_at_the_next_start(home: Home, wired: Wired) -> None:
    """R1"""
    life = home.start()
    page = life.open_page()
    life.post(page, "say one|sleep 30|tool ls")
    life.until(lambda: life.answers(page) == ["one"])
    life.dies = "after", life.commits + 1
    with pytest.raises(Crash):
        life.do(life.gateway.suspend(page))
    life = home.start()
    assert wired.deeds_after(life, 60) == []


def test_an_operators_stop_ends_all_agents_also_if_one_cannot_be_reached(home: Home, wired: Wired) -> None:
    """C29"""
    life = home.start()
    for _ in range(3):
        ask(life, "say one")
    first, *others = sorted(wired.machine.running)
    wired.machine.unreachable.add(first)
    life.do(life.gateway.stop(reason="shutdown_timeout", for_good=True))
    assert [wired.machine.running[name].asked for name in (first, *others)] == [False, True, True]
    life.die()


@pytest.mark.parametrize("end", ["stopped", "left", "expired", "stopped by one that dies"])
def test_a_turn_that_ends_while_it_waits_ends_the_work_of_its_agent(home: Home, wired: Wired, end: str) -> None:
    """A21, R5: no attempt is there to do it."""
    life = home.start()
    page = ask(life, "permit rm|say done")
    match end:
        case "stopped":
            life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
        case "left":
            life.do(life.gateway.reset(page, by="owner", client_id=None))
        case "expired":
            life.die()
            home.later(25 * 3600)
            life = home.start()
        case _:
            life.dies = "after", life.commits + 1
            with pytest.raises(Crash):
                life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
            life = home.start()
    life.until(lambda: wired.machine.permissions == ["rm cancelled"], within_s=10)
    assert life.outcomes(page) == ["failed" if end == "expired" else "cancelled"] and wired.machine.deeds == []


def test_retention_ends_the_agent_of_what_it_removes(home: Home, wired: Wired) -> None:
    life = home.start()
    page = ask(life, "say one")
    [(name, _)] = wired.machine.running.items()
    life.die()
    home.later(2 * 86400)
    life = home.start(retention=Limits(days=1.0))
    life.until(lambda: life.do(life.store.session(page)).deleted)
    life.until(lambda: not life.do(wired.kept.keepers.look(name)).runs, within_s=5)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_over_a_death_of_ours_no_prompt_joins_one_that_is_slow_to_end(tmp_path: Path, moment: str) -> None:
    """P5: it may have arrived, and its agent does not end it in time."""
    script = "sleep 8|tool ls|say done"
    for number, life, page, wired in over_deaths(tmp_path, moment, "load", "slow", begin=lambda life, _: posted(life, script)):
        assert life.outcomes(page) == ["completed"] and life.answers(page) == ["done"], (number, life.turn(page))
        assert wired.machine.joined == [] and wired.machine.deeds == ["ls"], (number, wired.machine.prompts)
    assert number > 5


# its own death


@pytest.mark.parametrize(("can", "how"), [(("load",), "loaded"), (("load", "resume"), "resumed"), ((), "told")])
def test_between_turns_a_dead_process_is_replaced_and_that_is_said(home: Home, tmp_path: Path, can: tuple[str, ...], how: str) -> None:
    wired = Wired(home, tmp_path / "work", *can)
    life = home.start()
    page = ask(life, "say one")
    wired.kill(life)
    life.post(page, "say two")
    life.rest(page)
    assert life.answers(page) == ["one", "two"]
    assert reads(life, page)[-1].how == how
    told = "scripted started a new session and was given the conversation so far."
    assert life.notices(page) == ([told] if how == "told" else [])
    assert len(wired.machine.prompts[-1]) == (2 if how == "told" else 1)
    assert how != "told" or "owner: say one\n\nYou: one" in wired.machine.prompts[-1][0]


def test_a_process_that_dies_in_mid_turn_is_started_again_and_people_are_told(home: Home, tmp_path: Path) -> None:
    """P3, P5: what it had begun is of unknown outcome."""
    wired = Wired(home, tmp_path / "work", "load")
    life = home.start()
    page = begun(life, "say one|sleep 1|say never")
    wired.kill(life)
    life.until(lambda: len(wired.machine.prompts) == 2)
    assert "ended in the middle of this turn" in wired.machine.prompts[1][-2]
    life.rest(page)
    assert life.notices(page) == [
        "The process of scripted ended in the middle of this answer (exit code 3). Holdfast started it again, and it has a new session."
    ]
    assert life.outcomes(page) == ["completed"] and life.answers(page) == ["one\n\nonenever"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_over_deaths_of_both_at_each_commit_the_turn_is_completed_and_the_death_told(tmp_path: Path, moment: str) -> None:
    """P3, P7: the agent dies in mid-turn, and the gateway while it starts the agent again."""

    def begin(life: Life, wired: Wired) -> str:
        page = begun(life, "say one|sleep 1|say never")
        wired.kill(life)
        return page

    for number, life, page, _ in over_deaths(tmp_path, moment, "load", begin=begin):
        assert life.outcomes(page) == ["completed"], (number, life.turn(page))
        assert life.answers(page)[0].startswith("one\n\n") and life.answers(page)[0].endswith("onenever"), (number, life.answers(page))
        assert sum("ended in the middle of this answer" in notice for notice in life.notices(page)) == 1, (number, life.notices(page))
    assert number > 5


def test_a_permission_that_a_dead_process_asked_for_is_not_asked_for_again(home: Home, tmp_path: Path) -> None:
    """P6: it died while its permission was open; the answer comes after that."""
    wired = Wired(home, tmp_path / "work", "load")
    life = home.start()
    page = ask(life, "permit rm|say done")
    wired.kill(life)
    approve(life, page)
    life.until(lambda: len(wired.machine.prompts) == 2)
    life.rest(page)
    assert len(life.transcript(page).questions) == 1, "the new process asks for its own permission, once"
    approve(life, page)
    life.rest(page)
    assert life.outcomes(page) == ["completed"] and wired.machine.permissions == ["rm once"] and wired.machine.deeds == ["rm"]


def test_one_that_dies_each_time_fails_its_turn(home: Home, wired: Wired) -> None:
    """P3, P8"""
    life = home.start()
    page = ask(life, "say one|die")
    assert life.outcomes(page) == ["failed"] and len(wired.machine.prompts) == 3
    assert (life.turn(page).error or "").startswith("The process of scripted ended before it answered (exit code 3).")


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("say one|fail", "scripted failed: as it was told."),
        ("say one|stop max_tokens", "limit of tokens"),
        ("stop refusal", "refused to answer"),
    ],
)
def test_an_end_that_is_none_fails_the_turn_with_what_it_was(home: Home, wired: Wired, script: str, error: str) -> None:
    """P3"""
    life = home.start()
    page = ask(life, script)
    assert life.outcomes(page) == ["failed"] and error in (life.turn(page).error or "")
    life.post(page, "say two")
    life.rest(page)
    assert life.answers(page)[-1] == "two" and len(wired.machine.running) == 1


# its processes


def test_a_process_that_nobody_uses_is_ended_and_one_that_waits_is_not(home: Home, wired: Wired) -> None:
    life = home.start()
    idle, waits = ask(life, "say one"), ask(life, "permit rm")

    async def is_open(session_id: str) -> bool:
        return session_id == waits

    life.do(wired.kept.tidy(is_open))
    assert len(wired.machine.running) == 2
    life.pass_s(61)
    life.do(wired.kept.tidy(is_open))
    assert [name.group for name in wired.machine.running] == [waits] and idle != waits
