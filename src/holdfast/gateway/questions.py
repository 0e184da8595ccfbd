"""The questions of a running attempt, and the answers that came to them while it runs."""

import asyncio
from collections.abc import Iterable

from holdfast.core import approvals, elicitation
from holdfast.core.approvals import UNREADABLE, Approval
from holdfast.core.events import QuestionAnswered
from holdfast.core.transcript import Transcript


class Questions:
    """Those that are open, by the call that waits for each. `read_to`: up to where the log was read for their answers. `given`: what people
    said about calls that wait to start. `came`: an answer did. A `live` question is one of a call that runs meanwhile.
    """

    def __init__(self) -> None:
        self.read_to = 0
        self.given: dict[str, Approval] = {}
        self.came = asyncio.Event()
        self._open: dict[str, str | None] = {}
        self._live: set[str] = set()
        self._answers: list[QuestionAnswered] = []

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._open

    @property
    def asking(self) -> tuple[str, ...]:
        """The calls that wait for an answer, or for their approval."""
        return tuple(self._open)

    @property
    def started(self) -> tuple[str, ...]:
        """Those of them that have started: the answer is their result."""
        return tuple(call_id for call_id, fingerprint in self._open.items() if fingerprint is None and call_id not in self._live)

    def recall(self, transcript: Transcript, *, read_to: int) -> None:
        """What the record says of them, up to there."""
        self.read_to, self.given = read_to, transcript.approvals
        for question in transcript.questions:
            self.add(question.call_id, question.fingerprint)

    def add(self, call_id: str, fingerprint: str | None = None, *, live: bool = False) -> None:
        """`fingerprint`: of a call that waits for its approval."""
        self._open[call_id] = fingerprint
        if live:
            self._live.add(call_id)

    def drop(self, call_id: str) -> None:
        """Nobody waits for its answer any more."""
        self._open.pop(call_id, None)
        self._live.discard(call_id)

    def close_unreadable(self, call_id: str) -> bool:
        """Closes a question whose answer cannot be read. True: the answer was to be its call's result. A call without an approval does not
        run.
        """
        fingerprint = self._open.pop(call_id)
        if fingerprint is not None:
            self.given[call_id] = Approval(question_id="", verdict=UNREADABLE, fingerprint=None)
        return fingerprint is None

    def tell(self, answers: Iterable[QuestionAnswered]) -> None:
        """Keeps the answers to open questions until they are taken. The same one may come twice."""
        told = {answered.call_id for answered in self._answers}
        self._answers += [answered for answered in answers if answered.call_id in self._open and answered.call_id not in told]
        if self._answers:
            self.came.set()

    def take(self) -> list[QuestionAnswered]:
        """The answers that came since the last call. Their questions are closed, and what was approved or denied is `given`."""
        answers, self._answers = self._answers, []
        for answered in answers:
            fingerprint = self._open.pop(answered.call_id, None)
            self._live.discard(answered.call_id)
            if answered.verdict not in (None, elicitation.GIVEN):
                self.given[answered.call_id] = approvals.given(answered, fingerprint)
        return answers
