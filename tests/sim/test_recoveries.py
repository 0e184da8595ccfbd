"""Stories of more than one death: restarts in a row, a session that takes the gateway down, safe mode, messages in each gap of recovery."""

import itertools

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core.turns import Outcome
from tests.sim.evidence import Evidence, SessionRecord
from tests.sim.people import Deed, Reset, Restart, Resume, ResumeAll, Say, Stop, Wait
from tests.sim.promises import check
from tests.sim.world import SETTINGS, Death, Weather, World

COMPLETED, CANCELLED, SET_ASIDE = Outcome.COMPLETED, Outcome.CANCELLED, Outcome.SET_ASIDE
PATIENT = msgspec.structs.replace(SETTINGS, turn_idle_timeout_s=4 * 3600.0)


def _tell(world: World) -> Evidence:
    try:
        world.run()
        return check(world)
    except AssertionError as broken:
        raise AssertionError(f"died {world.died_at or 'nowhere'}: {broken}") from broken


def _outcomes(found: Evidence) -> list[Outcome | None]:
    return [turn.end.outcome if turn.end else None for turn in found.turns]


def _session_of(found: Evidence, name: str) -> SessionRecord:
    """The first one this person had."""
    reader = next(person for person in found.world.people if person.name == name).readers[0]
    return next(session for session in found.sessions.values() if session.session_id == reader.session_id)


def _rules(session: SessionRecord) -> list[str]:
    kinds = (e.TurnResumed, e.TurnLeft, e.TurnEnded)
    return [event.rule for _, event in session.log if isinstance(event, kinds) and event.rule is not None]


@pytest.mark.parametrize("ends", ("KK", "RR", "KR", "RK", "RKR"), ids=lambda ends: f"ends {ends}")
def test_restarts_and_kills_in_a_row_leave_one_turn_one_answer(ends: str) -> None:
    """P1-P8, A17: the turn makes progress, so that no number of restarts (R) and kills (K) suspends it."""
    for point in range(14, 60, 9):
        deaths = tuple(Death(point=point) if end == "K" else None for end in ends)
        restarts = [Restart(after_s=0.4) for end in ends if end == "R"]
        world = World(1, deaths=deaths)
        world.person("ann", Say("say:one|call:unsafe|sleep:0.2|call:pure|sleep:0.2|call:idempotent|say:two"))
        world.person("operator", *restarts)
        found = _tell(world)
        assert _outcomes(found) == [COMPLETED], (point, world.died_at)


@pytest.mark.parametrize("chats", (False, True), ids=("page", "chat"))
def test_a_message_in_any_gap_of_recovery_is_answered_after_it(chats: bool) -> None:
    """B8: before the mark, between mark and decision, while it waits for its place, after the resume: two turns, in order."""
    settings = msgspec.structs.replace(SETTINGS, resumes_at_once=1)
    gaps = set()
    for hundredth in range(0, 90, 3 if not chats else 9):
        world = World(hundredth, deaths=(Death(at_s=3.0 if chats else 1.2),), settings=settings, weather=Weather(slow=0.3))
        second = Say("say:three", after_s=hundredth / 100)
        world.person("bob", Say("say:other|sleep:5|say:more"))
        world.person("ann", Say("say:one|call:unsafe|sleep:4|say:two"), Wait(lambda life: life.number == 1), second, chats=chats)
        found = _tell(world)
        session = _session_of(found, "ann")
        assert [turn.end.outcome for turn in session.turns if turn.end] == [COMPLETED, COMPLETED]
        accepted = session.log.of(e.MessageAccepted)[-1][0].seq
        gaps.add(tuple(item.kind for item, event in session.log if item.seq < accepted and isinstance(event, _STEPS)))
    assert len(gaps) >= (3 if not chats else 2), gaps


_STEPS = (e.TurnTaken, e.TurnInterrupted, e.TurnResumed, e.TurnEnded)


INNOCENT = ("bea", "cid", "dot", "eve", "fay")


@pytest.mark.parametrize("first", (False, True), ids=("started last", "started first"))
@pytest.mark.parametrize(
    "kills", ("say:one|sleep:0.2|crash", "call:unsafe|call:pure|sleep:0.2|crash"), ids=("in mid-text", "after a result")
)
def test_only_the_session_that_takes_the_gateway_down_is_suspended(kills: str, first: bool) -> None:
    """P8, A17, A25, R2: five others run beside it at each death, all of them complete, whatever it had recorded before it killed."""
    world = World(1)
    long = "|".join(["say:one", "sleep:3"] * 4)
    killer = [("ann", Say(kills, after_s=0.0 if first else 2.0))]
    for name, deed in [*killer, *((name, Say(long, after_s=0.5)) for name in INNOCENT)]:
        world.person(name, deed, chats=name == "eve")
    found = _tell(world)
    ann = _session_of(found, "ann")
    assert world.crashes == 3 and not any(span.safe for span in world.spans)
    assert [turn.end.outcome for turn in ann.turns if turn.end] == [SET_ASIDE] and ann.suspended
    assert _rules(ann)[-1] == "R2" and [event.restarts for _, event in ann.log.of(e.TurnInterrupted)] == [1, 2, 3]
    for name in INNOCENT:
        innocent = _session_of(found, name)
        assert [turn.end.outcome for turn in innocent.turns if turn.end] == [COMPLETED] and not innocent.suspended


def test_a_turn_that_ten_unclean_deaths_interrupted_is_suspended_though_it_passed_every_trial() -> None:
    """A17, A25: it lives for longer than any trial lasts, and kills then."""
    world = World(1, settings=PATIENT)
    world.person("ann", Say("say:one|sleep:700|crash"))
    found = _tell(world)
    ann = _session_of(found, "ann")
    assert world.crashes == 10 and ann.suspended and _rules(ann)[-1] == "R2"
    cuts = ann.log.of(e.TurnInterrupted)
    assert [event.deaths for _, event in cuts] == list(range(1, 11)) and max(event.restarts for _, event in cuts) == 2
    assert ann.log.of(e.TrialPassed)


def test_a_machine_that_goes_down_again_and_again_blames_nobody_who_has_something_to_show() -> None:
    """A17: with the whole machine gone it is a planned end."""
    world = World(1, deaths=tuple(Death(at_s=3.0) for _ in range(5)), boot=lambda life: f"boot {life}", settings=PATIENT)
    world.person("ann", Say("|".join(["call:pure 0.4"] * 30)))
    world.person("bob", Say("say:one", after_s=2.0), Say("say:two", after_s=1.0), Say("say:three", after_s=1.0))
    found = _tell(world)
    ann = _session_of(found, "ann")
    assert world.crashes == 5 and not ann.suspended
    assert {event.restarts for _, event in ann.log.of(e.TurnInterrupted)} == {0}


@pytest.mark.parametrize("way", ("by itself", "by an operator", "by a message"))
def test_safe_mode_is_entered_and_left(way: str) -> None:
    """B14, R7, A23: after three starts that died what was cut is held; then it goes on, or a message goes on from it."""
    deaths = (Death(at_s=0.5), Death(at_s=0.5), Death(at_s=4.0))  # The last one while it sleeps, with a result on record.
    world = World(1, deaths=deaths)
    more: dict[str, tuple[Deed, ...]] = {
        "by itself": (),
        "by an operator": (Wait(lambda life: life.gateway.safe_mode), ResumeAll(after_s=3.0)),
        "by a message": (Wait(lambda life: life.gateway.safe_mode), Say("say:three", after_s=3.0)),
    }
    world.person("ann", Wait(lambda life: life.number == 2), Say("say:one|call:unsafe|sleep:4.5|say:two"), *more[way])
    found = _tell(world)
    ann, last = _session_of(found, "ann"), world.spans[-1]
    assert last.safe and last.left_safe_mode is not None
    assert "R7" in _rules(ann)
    assert len([event for _, event in ann.log.of(e.MessageWritten) if "safe mode" in event.text]) == 1
    lasted_s = last.left_safe_mode[1] - last.began
    if way == "by a message":
        assert _outcomes(found) == [SET_ASIDE, COMPLETED] and lasted_s < 60
    else:
        assert _outcomes(found) == [COMPLETED] and (lasted_s < 60) == (way == "by an operator")


def test_a_stop_accepted_just_before_the_crash_wins() -> None:
    """A21, P8, R0: wherever the process dies between the stop's acknowledgement and the turn's end."""
    ended_by_rule = 0
    for point in itertools.count(10):
        world = World(1, deaths=(Death(point=point, unsynced="none"),))
        world.person("ann", Say("say:one|call:unsafe|hang"), Stop(once=("tool.finished", 1)))
        found = _tell(world)
        assert _outcomes(found) == [CANCELLED], world.died_at
        ended_by_rule += "R0" in _rules(_session_of(found, "ann"))
        if not world.crashes:
            break
    assert ended_by_rule


def test_a_two_hour_tool_that_was_running_at_the_crash_is_not_stale() -> None:
    """R6: its heartbeats are its signs of life, and the last of them is what counts."""
    world = World(1, deaths=(Death(at_s=7200.0),), settings=PATIENT)
    world.person("ann", Say("say:one|call:unsafe 7300|say:two"))
    found = _tell(world)
    ann = _session_of(found, "ann")
    assert _outcomes(found) == [COMPLETED] and _rules(ann) == ["R9"]
    beats = [item.at for item, _ in ann.log.of(e.TurnAlive)]
    assert len(beats) > 7200 / 30
    cut_at = ann.log.of(e.TurnInterrupted)[0][0].at
    assert cut_at - beats[-1] < 60_000


def test_a_cut_turn_that_is_found_too_late_is_set_aside_and_told() -> None:
    """R6: a day after its last sign of life it is not resumed; its chat is told once, and its next message goes on."""
    world = World(1, deaths=(Death(at_s=2.0),), weather=Weather(downtimes=(24 * 3600.0,)))
    world.person("ann", Say("say:one|call:unsafe|sleep:4|say:two"), Say("say:three", once=("turn.ended", 1), after_s=1.0), chats=True)
    found = _tell(world)
    assert _outcomes(found) == [SET_ASIDE, COMPLETED] and "R6" in _rules(_session_of(found, "ann"))
    assert len([sent for sent in world.server.sent if "too long ago to continue without asking" in sent.text]) == 1


@pytest.mark.parametrize("banned", (False, True), ids=("its platform is gone for a while", "its user may no longer use it"))
def test_a_cut_turn_without_a_place_to_answer_waits_or_is_set_aside(banned: bool) -> None:
    """R8: left while its platform is not configured and decided again when it is; set aside where its user is not allowed."""
    world = World(
        1,
        deaths=(Death(point=30), Death(at_s=3.0)),
        reachable=lambda life: banned or life != 1,
        bans=("ann", 1) if banned else None,
    )
    world.person("ann", Say("say:one|call:unsafe|sleep:1|say:two"), chats=True)
    world.person("bob", Say("say:one", after_s=20.0))
    found = _tell(world)
    ann = _session_of(found, "ann")
    assert _rules(ann) == (["R8"] if banned else ["R8", "R9"])
    assert [turn.end.outcome for turn in ann.turns if turn.end] == [SET_ASIDE if banned else COMPLETED]


def test_a_reset_between_accept_and_start_refuses_what_waits() -> None:
    """A20, A22: it starts no turn, and its sender is told once, with the text; a death anywhere changes nothing of that."""
    for point in itertools.count(12, 3):
        world = World(1, deaths=(Death(point=point, unsynced="none"),))
        world.person("ann", Say("say:one|hang"), Say("say:two"), Say("say:three"), Reset(once=("text", 1), again=2), Say("say:four"))
        found = _tell(world)
        ann = _session_of(found, "ann")
        assert len(found.sessions) == 2 and _outcomes(found) == [CANCELLED, COMPLETED], world.died_at
        told = [event.text for _, event in ann.log.of(e.MessageWritten) if event.role == "notice"]
        assert len(told) == 1 and "say:two" in told[0] and "say:three" in told[0]
        if not world.crashes:
            break


def test_an_older_conversation_resumed_while_a_turn_runs_takes_its_place() -> None:
    """A20, A21: the turn that runs is stopped; the next message belongs to the conversation that was resumed."""
    for point in itertools.count(30, 4):
        world = World(1, deaths=(Death(point=point, unsynced="none"),))
        world.person(
            "ann",
            Say("say:one"),
            Reset(once=("turn.ended", 1)),
            Say("say:two|hang"),
            Resume(once=("text", 2), again=1),
            Say("say:three"),
        )
        found = _tell(world)
        assert _outcomes(found) == [COMPLETED, COMPLETED, CANCELLED], world.died_at
        assert len(_session_of(found, "ann").turns) == 2
        if not world.crashes:
            break


def test_a_stop_in_the_moment_in_which_a_question_is_recorded_closes_its_call() -> None:
    """A21, A27, P5: the question is on record and its attempt is told to stop before it knows."""
    met = 0
    for seed in range(40):
        world = World(seed, weather=Weather(slow=0.9))
        stop = Stop(after_s=seed / 50)
        world.person("ann", Say("say:one|ask:why?"), stop)
        world.person("bob", Say("model: go > ask why > guarded a | done"), stop)
        found = _tell(world)
        for turn in found.turns:
            asked = turn.log.of(e.QuestionAsked)
            met += bool(asked and turn.stopped_at is not None and turn.stopped_at < asked[0][0].seq)
    assert met, "no stop came just before a question was recorded"
