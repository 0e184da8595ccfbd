"""The conversation as people and agents see it, folded from the log. This package is the one place that knows what events mean together: a
module for each subject says what its events do to the conversation.
"""

from collections.abc import Iterable

from holdfast.core import events as e
from holdfast.core import usage
from holdfast.core.approvals import Approval
from holdfast.core.messages import Compacted, Link, Message, Question, ToolCall, Turn
from holdfast.core.processes import Process
from holdfast.core.steps import Step, Thoughts
from holdfast.core.transcript import journals, messages, processes, questions, steps, turns
from holdfast.core.transcript.fold import Fold, Free, InTurn
from holdfast.core.turns import MOVES, TABLE, TurnState

# What is done with an event of a turn, and with one that belongs to none. Kinds that are not here say nothing to people.
IN_TURN: InTurn = {**messages.IN_TURN, **steps.IN_TURN, **questions.IN_TURN, **turns.IN_TURN}
FREE: Free = {**messages.FREE, **steps.FREE, **questions.FREE, **turns.FREE, **journals.FREE, **processes.FREE}


class Transcript:
    """Apply events in the order of the log; read everything else at any time. What comes in pieces is joined when it is read, so that
    folding costs as much as the log is long. Within a turn the order is that of (epoch, position): what a lease wrote that is over already
    belongs before what the next one wrote, however late it comes. `behind`: the place in the log from which it is read, 0 for all of it;
    one that begins later knows the newest turn, and what an agent is given, as well as the whole one does.
    """

    def __init__(self, behind: int = 0) -> None:
        self._fold = Fold(whole=behind == 0)
        self.seq = self.behind = behind
        self.last_at = 0

    @property
    def complete(self) -> bool:
        """Everything is there that an agent is given. One that does not begin with the log must have met the summary, and the first turn
        behind it: where their records are damaged, the whole log has to be read.
        """
        if not self.behind:
            return True
        return self.compacted is not None and bool(self.turns) and self.turns[0].generation <= self.compacted.event.through + 1

    def extend(self, logged: Iterable[e.Logged]) -> "Transcript":
        for item in logged:
            self.apply(item)
        return self

    def apply(self, item: e.Logged) -> None:
        event, fold = item.event, self._fold
        self.seq, self.last_at = item.seq, item.at or self.last_at
        if item.turn_id is None:
            if free := FREE.get(type(event)):
                free(fold, item, event)
        elif work := fold.meet(item, event):
            if item.kind in MOVES:  # Where a damaged record left a hole the table has no entry: the conversation stays readable.
                work.turn.state = TABLE.get((work.turn.state, event.move), work.turn.state)
            work.signs.note(work.turn, event, work.at, item.at)
            if in_turn := IN_TURN.get(type(event)):
                in_turn(fold, work, item, event)
            elif free := FREE.get(type(event)):
                free(fold, item, event)
        else:
            fold.pass_over(event)

    # the conversation

    @property
    def messages(self) -> list[Message]:
        self._fold.join()
        return self._fold.rows.read()

    @property
    def queued(self) -> dict[str, Message]:
        """What waits for a turn, by id, oldest first."""
        return self._fold.queued

    def find(self, message_id: str) -> Message | None:
        """The message of this id, also while it waits."""
        return self._fold.find(message_id)

    @property
    def turns(self) -> list[Turn]:
        return self._fold.turns

    def steps_of(self, turn_id: str) -> list[Step]:
        return self._fold.works[turn_id].steps.steps

    def thoughts_of(self, turn_id: str) -> list[Thoughts]:
        return self._fold.works[turn_id].steps.thoughts()

    @property
    def questions(self) -> list[Question]:
        """The open ones, oldest first."""
        return list(self._fold.questions.values())

    @property
    def processes(self) -> dict[str, Process]:
        """Those of the background, in the order of their starts."""
        return self._fold.processes

    @property
    def spent(self) -> usage.Spent:
        """What the models of all turns used, and the one that was asked for a title."""
        return sum((turn.spent for turn in self.turns if turn.spent.requests), self._fold.titled)

    # what agents are given of it

    @property
    def compacted(self) -> Compacted | None:
        """What they are given instead of the earliest turns."""
        return self._fold.compacted

    def recall(self, compaction: e.ContextCompacted) -> int:
        """Behind which place of the log lies everything that they are given once this is recorded; 0 if that may be anywhere. An agent
        that is another program may have been met in any turn.
        """
        through = compaction.through if compaction.covers else self.compacted.event.through if self.compacted else 0
        kept = next((turn for turn in self.turns if turn.generation > through), None)
        return self._fold.works[kept.id].behind if kept and not self.links else 0

    @property
    def trimmed(self) -> set[str]:
        """Calls whose results they are given shortened."""
        return self._fold.trimmed

    @property
    def links(self) -> dict[str, Link]:
        """To agents that are other programs, by their names."""
        return self._fold.links

    # the newest turn

    @property
    def calls(self) -> list[ToolCall]:
        self._fold.join()
        return list(newest.steps.calls) if (newest := self._fold.newest) else []

    @property
    def approvals(self) -> dict[str, Approval]:
        """What people said about its calls that have not started since, by call."""
        return dict(newest.approvals) if (newest := self._fold.newest) else {}

    @property
    def steps(self) -> list[Step]:
        return newest.steps.steps if (newest := self._fold.newest) else []

    @property
    def begun(self) -> int:
        """The attempt that began to write the open step, as far as pieces of it are known; 0 for none."""
        return newest.begun.get(newest.turn.steps, 0) if (newest := self._fold.newest) else 0

    @property
    def request(self) -> Message | None:
        """The message that began it."""
        return self._fold.rows.newest(self.turns[-1].causes if self.turns else ())

    @property
    def anchor(self) -> str | None:
        """What a reply of it hangs on."""
        return self.request.anchor if self.request else None

    @property
    def above_answer(self) -> Message | None:
        """The message below which its answer will be read, while it is open and has not said anything yet."""
        newest = self._fold.newest
        return self._fold.rows.above(newest.answer) if newest and newest.turn.state is not TurnState.ENDED else None

    @property
    def answer_text(self) -> str:
        """Its answer so far."""
        self._fold.join()
        return newest.answer.text if (newest := self._fold.newest) else ""
