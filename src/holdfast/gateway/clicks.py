"""Buttons below questions: pressing one answers the question, as if its words had been written."""

import structlog

from holdfast.core import approvals, delivery, inbound, notices, rights
from holdfast.core.errors import NotFound, NotYours, QuestionClosed, Refused
from holdfast.core.inbound import Click, Source
from holdfast.core.places import place
from holdfast.core.plans import deliver
from holdfast.core.plans.answer import Answer
from holdfast.core.replies import asked_delivery
from holdfast.core.rich import Rich
from holdfast.core.rights import Verdict
from holdfast.gateway.host import Host
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.links import Link
from holdfast.gateway.people import People
from holdfast.gateway.sending import Sender
from holdfast.ports.platforms import Outgoing
from holdfast.ports.store import Store

log = structlog.get_logger()


class Clicks:
    def __init__(self, *, store: Store, host: Host, lanes: Lanes, people: People) -> None:
        self._store, self._clock, self._lanes, self._people = store, host.clock, lanes, people
        self._sender = Sender(store)

    async def press(self, link: Link, source: Source, click: Click) -> None:
        """On record before the one who pressed it is told. A click that is delivered again is one click."""
        if await self._people.verdict(link.name, source, addressed=True) is not Verdict.ALLOWED:
            return await self._reply(link, click, notices.not_yours())
        found = inbound.button(click.data)
        if found is None:
            return await self._reply(link, click, notices.button_gone())
        question_id, which = found
        words, over = await self._answer(link, source, click, question_id, which)
        await self._reply(link, click, words)
        if over:
            await self._show(link, click, question_id, words)

    async def _answer(self, link: Link, source: Source, click: Click, question_id: str, which: str) -> tuple[str, bool]:
        """What came of it, in a few words, and whether the question is over."""
        sender = rights.sender(link.name, source.user)
        answer = Answer(
            by=sender,
            verdict={inbound.APPROVE: approvals.APPROVE, inbound.ALWAYS: approvals.APPROVE, inbound.DENY: approvals.DENY}.get(which),
            scope={inbound.APPROVE: approvals.ONCE, inbound.ALWAYS: approvals.SESSION, inbound.DENY: approvals.ONCE}.get(which),
            number=int(which) if which.isdecimal() else None,
            operator=rights.operates(link.policy, source.user),
            dedup_key=f"click|{link.id}|{click.id}",
        )
        try:
            session_id = await self._store.answer(question_id, answer, at=self._clock.now())
        except NotYours:
            return notices.not_yours(), False
        except (QuestionClosed, NotFound) as error:
            return str(error), True
        except Refused as error:
            return str(error), False
        self._lanes.look(session_id)
        return notices.answered_by(source.name, which), True

    async def _show(self, link: Link, click: Click, question_id: str, words: str) -> None:
        """The message loses its buttons and says what came of them: a courtesy, for those who read it later."""
        rows = await self._store.delivery(asked_delivery(question_id))
        owed = next((row for row in rows if row.receipt == click.message), None)
        if owed is None:
            return
        text = deliver.words(owed.content, owed.piece)
        shown = Rich(f"{text.text}\n\n{words}", text.spans)
        where = place(owed.session_key, owed.anchor)
        outcome = await self._sender.edit(link, click.message, Outgoing(place=where, key=delivery.key(question_id), text=shown))
        if outcome.error is not None:
            log.info("the buttons of a question stay", platform=link.name, error=outcome.error)

    async def _reply(self, link: Link, click: Click, words: str) -> None:
        try:
            await link.platform.answer_click(click, words)
        except Exception as error:  # The platform's boundary: what is answered is on record.
            log.info("a click was not acknowledged", platform=link.name, error=f"{type(error).__name__}: {error}")
