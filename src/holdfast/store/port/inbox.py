"""What people and clients say: messages and other causes, commands, answers, and what clients recite."""

from collections.abc import Sequence

from holdfast.core import events as e
from holdfast.core.approvals import Rule
from holdfast.core.content import Content
from holdfast.core.plans.accept import Accepted
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.causes import Recorded
from holdfast.core.plans.command import Action, Aside, Stop
from holdfast.core.plans.edit import Edit, Edited
from holdfast.core.plans.stop import Stopped
from holdfast.core.recitals import Recited
from holdfast.ports.inbox import Terms
from holdfast.store import recitals, rules
from holdfast.store.port.base import OverLines
from holdfast.store.work import inbox, questions


class Inbox(OverLines):
    async def accept(self, session_id: str, message: e.MessageAccepted, terms: Terms, *, at: int) -> Accepted:
        return await self._lines.write(inbox.accept_message, session_id, message, terms, at)

    async def recited(self, message_id: str) -> Recited | None:
        return await self._lines.read(recitals.recited, message_id)

    async def recited_under(self, dedup_key: str) -> Recited | None:
        return await self._lines.read(recitals.recited_under, dedup_key)

    async def reciting(self, digests: Sequence[str], *, limit: int) -> list[Recited]:
        return await self._lines.read(recitals.reciting, tuple(digests), limit)

    async def last_recited(self, session_id: str) -> Recited | None:
        return await self._lines.read(recitals.last_recited, session_id)

    async def withdraw(self, session_id: str, message_id: str, *, at: int) -> bool:
        return await self._lines.write(inbox.withdraw_message, session_id, message_id, at)

    async def edit(self, session_id: str, edit: Edit, *, at: int) -> Edited:
        return await self._lines.write(inbox.edit_message, session_id, edit, at)

    async def said_under(self, dedup_key: str) -> tuple[str, str] | None:
        return await self._lines.read(inbox.said_under, dedup_key)

    async def record_cause(
        self,
        session_id: str,
        *,
        cause_id: str,
        what: str,
        content: Content,
        dedup_key: str | None,
        at: int,
        sender: str = "owner",
        generation: int | None = None,
        anchor: str | None = None,
    ) -> Recorded:
        cause = e.CauseRecorded(
            cause_id=cause_id, what=what, content=content, sender=sender, generation=generation, anchor=anchor, dedup_key=dedup_key
        )
        return await self._lines.write(inbox.record_cause, session_id, cause, at)

    async def command(self, session_id: str, aside: Aside, action: Action, *, at: int) -> Accepted:
        return await self._lines.write(inbox.carry_out, session_id, aside, action, at, when_full=isinstance(action, Stop))

    async def tell_once(self, session_id: str, *, notice_id: str, content: Content, anchor: str | None, at: int) -> bool:
        return await self._lines.write(inbox.tell_once, session_id, notice_id, content, anchor, at)

    async def request_stop(
        self, session_id: str, *, by: str, dedup_key: str | None, at: int, turn_id: str | None = None, saw: str | None = None
    ) -> Stopped:
        return await self._lines.write(inbox.request_stop, session_id, by, turn_id, saw, dedup_key, at, when_full=True)

    async def answer(self, question_id: str, answer: Answer, *, at: int) -> str:
        return await self._lines.write(questions.answer_question, question_id, answer, at)

    async def rules(self, session_id: str | None = None) -> list[Rule]:
        return await self._lines.read(rules.rules, session_id)

    async def remove_rule(self, rule_id: str, *, by: str, at: int) -> Rule:
        return await self._lines.write(rules.remove_rule, rule_id, by, at)

    async def expire_questions(self, *, now: int) -> list[str]:
        expired = page = await self._lines.write(inbox.expire_questions, now, when_full=True)
        while page:
            page = await self._lines.write(inbox.expire_questions, now, when_full=True)
            expired = expired + page
        return expired
