"""The questions of a running turn, and the answers that came to them while it runs."""

import asyncio
from collections.abc import Iterable

from holdfast.core.errors import Unavailable
from holdfast.core.events import Page, QuestionAnswered
from holdfast.core.messages import Question
from holdfast.ports.log import Log

LIMIT = 200


class Questions:
    """Those that are open, by the call that waits for each. `after`: up to where the log is known to the turn's process."""

    def __init__(self, log: Log, session_id: str, *, after: int, open: Iterable[Question]) -> None:
        self._log, self._session_id, self._after = log, session_id, after
        self._open = {question.call_id: question.question_id for question in open}

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._open

    def add(self, call_id: str, question_id: str) -> None:
        self._open[call_id] = question_id

    def close(self, call_id: str) -> None:
        del self._open[call_id]

    @property
    def asking(self) -> tuple[str, ...]:
        """The calls that wait for an answer."""
        return tuple(self._open)

    async def answers(self) -> list[QuestionAnswered]:
        """Those that came since the last look, in this process or another one: the log has them all."""
        found = []
        while self._open and (page := await self._read()):
            for item in page:
                self._after = item.seq
                event = item.event
                if isinstance(event, QuestionAnswered) and self._open.pop(event.call_id, ""):
                    found.append(event)
        return found

    async def _read(self) -> Page:
        while True:
            try:
                return await self._log.records(self._session_id, after=self._after, limit=LIMIT)
            except Unavailable as error:
                await asyncio.sleep(error.retry_after_s)
