"""The promises about turns that a model answers, and about calls that a person has to approve, checked as the others are."""

from collections import defaultdict

from holdfast.core import approvals, retries
from holdfast.core import events as e
from holdfast.core.effects import ToolOutcome
from tests.fakes.agents_model import MODELS, OPEN, RESPONDED, Asked
from tests.fakes.tools import GUARDED
from tests.sim.evidence import Evidence, TurnRecord

# Turn, attempt, step, and whether it is for a summary.
Key = tuple[str, int, int, bool]


def a_model_is_asked_for_what_is_not_on_record(found: Evidence) -> None:
    """P5, B10: each request holds every step that is on record, with one result for each of its calls, and is made of the model whose turn
    it is after the failures on record. So no response that was recorded is asked for again, by whatever attempt.
    """
    turns = {turn.id: turn for turn in found.turns}
    for asked in found.world.asked:
        turn = turns[asked.turn_id]
        assert not asked.wrong, f"P5: a model was given {asked.wrong} in {turn.id}"
        steps = [event.step for item, event in turn.log.of(e.ModelResponded) if item.id <= asked.log_id]
        assert asked.summary or len(steps) == asked.step, f"P5: {asked} while the steps {steps} were on record"
        asked.step = len(steps)  # A request for a summary holds none.
        failures = [
            event
            for item, event in turn.log.of(e.ModelFailed)
            if item.id <= asked.log_id and event.step == asked.step and event.summary is asked.summary
        ]
        due = retries.due(failures, MODELS)
        assert due is not None and due.model == asked.model, f"B10: {asked} after {failures}"


def every_failed_request_is_on_record(found: Evidence) -> None:
    """B10: before the next one is made. Only the last of an attempt can be missing: the process died, or the turn was ended, before it was
    recorded. No failure is on record that did not happen, and they are counted over all attempts.
    """
    made: dict[Key, list[Asked]] = defaultdict(list)
    for asked in found.world.asked:
        made[asked.turn_id, asked.attempt, asked.step, asked.summary].append(asked)
    for turn in found.turns:
        recorded: dict[Key, list[tuple[str, str]]] = defaultdict(list)
        tries: dict[tuple[int, str, bool], int] = defaultdict(int)
        for item, event in turn.log.of(e.ModelFailed):
            recorded[turn.id, item.attempt, event.step, event.summary].append((event.model, event.error))
            tries[event.step, event.model, event.summary] += 1
            number = tries[event.step, event.model, event.summary]
            assert event.tries == number <= retries.TRIES, f"B10: {item} is number {number}"
        for key in recorded.keys() | {key for key in made if key[0] == turn.id}:
            failed = [(asked.model, asked.outcome) for asked in made[key] if asked.outcome not in (OPEN, RESPONDED)]
            known = recorded[key]
            last_failed = bool(made[key]) and made[key][-1].outcome not in (OPEN, RESPONDED)
            assert known == failed or (last_failed and known == failed[:-1]), f"B10: {key} failed as {failed}; on record are {known}"


def an_approval_is_used_once(found: Evidence) -> None:
    """A27, P5: a call that asks has its effect only after a person approved that very call, or allowed all like it; one approval starts
    one call. What was denied did nothing and says so.
    """
    done = {each.call_id for each in found.world.effects}
    for session in found.sessions.values():
        approved: dict[str, str] = {}
        denied: set[str] = set()
        granted = False
        for item, event in session.log:
            match event:
                case e.QuestionAnswered(verdict=approvals.APPROVE):
                    approved[event.question_id] = event.call_id
                case e.QuestionAnswered(verdict=approvals.DENY):
                    denied.add(event.call_id)
                case e.RuleAdded():
                    granted = True
                case e.ToolStarted(name=name) if name == GUARDED:
                    if event.approval is not None:
                        assert approved.pop(event.approval, None) == event.call_id, f"A27: {item} with an approval that it has not got"
                    else:
                        assert granted or event.call_id not in done, f"A27: {item} was not approved by anybody"
                case _:
                    pass
        for call_id in denied:
            assert call_id not in done, f"A27: {call_id} was denied, and done"
        for turn in session.turns:
            _check_refused(turn, denied, done)


def _check_refused(turn: TurnRecord, denied: set[str], done: set[str]) -> None:
    unrunnable = {
        f"{turn.id}.{response.step}.{number}"
        for response in turn.responses
        for number, call in enumerate(response.calls, 1)
        if call.problem is not None
    }
    assert not unrunnable & done, f"P5: {unrunnable & done} could not be run, and were"
    for call_id, call in turn.calls.items():
        outcome, _ = turn.results.get(call_id, (None, ""))
        if call.name == GUARDED and outcome is ToolOutcome.FAILED:
            assert call_id in denied | unrunnable, f"A27: {call_id} failed, and nobody denied it"
        if call.name == GUARDED and outcome is ToolOutcome.DONE:
            assert call_id in done, f"P5: {call_id} is said to be done and never was"


MODEL_PROMISES = (a_model_is_asked_for_what_is_not_on_record, every_failed_request_is_on_record, an_approval_is_used_once)
