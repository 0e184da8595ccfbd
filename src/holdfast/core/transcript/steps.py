"""What agents say and do within a turn: text and thoughts, responses of models, calls of tools."""

import msgspec

from holdfast.core import events as e
from holdfast.core import notices, usage
from holdfast.core.messages import Compacted, Failure, Link, Message, model_name
from holdfast.core.spools import stream_id
from holdfast.core.transcript.fold import Fold, Free, InTurn, Work
from holdfast.core.turns import TurnState


def _say(fold: Fold, work: Work, item: e.Logged, event: e.Text) -> None:
    if work.superseded and stream_id(work.turn.id, work.at[0]) in work.superseded:
        return
    work.steps.say(work.at, event)
    if event.offset == 0:
        work.begin_again(event.step, item.attempt)
    fold.unjoined.add(work)
    fold.open(work, item)


def _think(fold: Fold, work: Work, item: e.Logged, event: e.Reasoning) -> None:
    if work.turn.state is not TurnState.ENDED:
        work.steps.think(event)


def _respond(fold: Fold, work: Work, item: e.Logged, event: e.ModelResponded) -> None:
    work.steps.respond(event)
    work.begin_again(event.step, item.attempt)
    work.turn.steps = max(work.turn.steps, event.step + 1)
    work.turn.spent += usage.of(event)
    work.turn.model = model_name(event.provider, event.model) or work.turn.model
    fold.unjoined.add(work)
    fold.open(work, item)


def _fail(fold: Fold, work: Work, item: e.Logged, event: e.ModelFailed) -> None:
    work.turn.failures.append(Failure(item.at, event))
    work.steps.stop_thinking()


def _compact(fold: Fold, work: Work, item: e.Logged, event: e.ContextCompacted) -> None:
    """For those who read, everything stays; a row tells that a model no longer gets all of it."""
    work.turn.spent += usage.of(event)
    fold.trimmed.update(event.trimmed)
    if event.covers and (fold.compacted is None or event.through >= fold.compacted.event.through):
        fold.compacted = Compacted(work.turn.id, work.turn.generation, event)
    told = notices.compacted(summarised=bool(event.summary), problem=event.problem, trimmed=len(event.trimmed))
    what = event.trimmed[0] if event.trimmed else event.through  # A turn gives up nothing twice.
    row = Message(id=f"{work.turn.id}.compacted.{what}", role="notice", content=told, turn_id=work.turn.id, created_at=item.at)
    fold.rows.insert_above(work.answer, row)


def _call(fold: Fold, work: Work, item: e.Logged, event: e.ToolStarted) -> None:
    work.steps.start(work.at, item, event)
    work.approvals.pop(event.call_id, None)
    fold.open(work, item)


def _put_out(fold: Fold, work: Work, item: e.Logged, event: e.ToolOutput) -> None:
    work.steps.put_out(work.at, event)
    fold.unjoined.add(work)


def _finish(fold: Fold, work: Work, item: e.Logged, event: e.ToolFinished) -> None:
    work.steps.finish(work.at, item.attempt, event.call_id, event.outcome, event.content, item.at)
    work.turn.spent += usage.of_call(event)


def _start_agent(fold: Fold, work: Work, item: e.Logged, event: e.AgentStarted) -> None:
    before = fold.links.get(event.agent) or Link(process=event.process)
    again = before.starts if before.started_in == work.turn.id else 0
    fold.links[event.agent] = msgspec.structs.replace(before, process=event.process, started_in=work.turn.id, starts=again + 1)


def _read_agent(fold: Fold, work: Work, item: e.Logged, event: e.AgentRead) -> None:
    before = fold.links.get(event.agent) or Link(process=event.process)
    fold.links[event.agent] = msgspec.structs.replace(before, read=event, turn_id=work.turn.id)
    work.steps.read(event)


def _title(fold: Fold, item: e.Logged, event: e.TitleMade) -> None:
    fold.titled += usage.of_title(event)


IN_TURN: InTurn = {
    e.Text: _say,
    e.Reasoning: _think,
    e.ModelResponded: _respond,
    e.ModelFailed: _fail,
    e.ContextCompacted: _compact,
    e.ToolStarted: _call,
    e.ToolOutput: _put_out,
    e.ToolFinished: _finish,
    e.AgentStarted: _start_agent,
    e.AgentRead: _read_agent,
}
FREE: Free = {e.TitleMade: _title}
