"""Calls that ask a person in their middle. Most rest meanwhile, and nothing runs; one that cannot is held open for a while."""

import asyncio
from collections import Counter
from collections.abc import Callable

from holdfast.core import elicitation
from holdfast.core import events as e
from holdfast.core.elicitation import Ask, Elicited, Given, Request, Resting
from holdfast.core.errors import HoldfastError
from holdfast.core.messages import ToolCall
from holdfast.core.plans.ask import QUESTION_LIFE_MS
from holdfast.gateway.asking import Asker
from holdfast.gateway.host import Host
from holdfast.gateway.questions import Questions
from holdfast.gateway.tasks import heard
from holdfast.gateway.turn_log import TurnLog

# As long as a turn may be silent is longer, so that no turn ends because somebody took their time.
LIVE_MS = 15 * 60 * 1000
UNANSWERED, OVER = "nobody answered in time", "the call no longer waits for an answer"


class Rests:
    """Of one attempt. It does not hold who runs the calls and holds it: what an attempt leaves behind would be a ring, which only a look
    through everything frees.
    """

    def __init__(self, written: TurnLog, asker: Asker, questions: Questions, host: Host) -> None:
        self._log, self._asker, self._questions, self._host = written, asker, questions, host
        self._rounds: Counter[str] = Counter()  # How often each call has asked while it ran.

    async def ask(self, call: ToolCall, elicited: Elicited, problem: str = "") -> str:
        """Puts a question of a call on record; the answer is the next attempt's, or this one's if it comes soon. Gives its id."""
        now = self._host.clock.now()
        life_ms = LIVE_MS if elicited.live else QUESTION_LIFE_MS
        question_id, events = self._asker.elicitation(call, elicited, problem, expires_at=now + life_ms)
        answers = {} if call.resting is None else dict(call.resting.answers)
        answers.pop(elicited.number, None)
        call.resting = Resting(elicited=elicited, answers=answers)
        self._questions.add(call.call_id, live=elicited.live)
        await self._log.record(*events)
        return question_id

    async def ask_live(self, hear: Callable[[], bool], call: ToolCall, version: str, request: Request) -> Given | None:
        """Asks while the call runs. None: nobody answered in time, or nobody can be asked this. `hear`: takes the answers that came."""
        if elicitation.problem((request,), None) is not None:
            return None
        elicited, problem = Elicited(requests=(request,), live=True, version=version), ""
        while self._rounds[call.call_id] < elicitation.MOST_ROUNDS:
            self._rounds[call.call_id] += 1
            question_id = await self.ask(call, elicited, problem)
            self._log.silent_for(LIVE_MS / 1000)
            try:
                answered = await self._answered(hear, call)
            except asyncio.CancelledError:  # The call is over, or its turn is.
                self._host.tasks.spawn(self._close(call, question_id, OVER), name=f"question {question_id}")
                raise
            if not answered:
                await self._close(call, question_id, UNANSWERED)
                return None
            step = elicitation.proceed(call.resting) if call.resting is not None else Ask(0)
            if not isinstance(step, Ask):
                call.resting = None
                return step[request.key]
            problem = step.problem
        return None

    async def _answered(self, hear: Callable[[], bool], call: ToolCall) -> bool:
        until = self._host.clock.monotonic() + LIVE_MS / 1000
        while call.call_id in self._questions:
            self._questions.came.clear()
            if hear() and call.call_id not in self._questions:
                break
            if not await heard(self._questions.came, until - self._host.clock.monotonic()):
                return False
        return True

    async def _close(self, call: ToolCall, question_id: str, why: str) -> None:
        self._questions.drop(call.call_id)
        call.resting = None
        try:
            await self._log.record(e.QuestionClosed(question_id=question_id, call_id=call.call_id, why=why))
        except HoldfastError:
            return  # The attempt is over; what ends or resumes the turn closes it.
