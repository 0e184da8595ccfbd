"""Answers to what an agent asked. A late one is told so."""

from collections.abc import Iterable

import msgspec
from starlette.types import ASGIApp

from holdfast.core.errors import NotFound, QuestionClosed
from holdfast.gateway.gateway import Gateway
from holdfast.web.bodies import Body
from holdfast.web.errors import NotYet
from holdfast.web.operations import Call, Operation
from holdfast.web.replies import answer


class Answer(Body, frozen=True):
    text: str


class AcceptedAnswer(msgspec.Struct):
    question_id: str
    session_id: str


class Questions:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def operations(self) -> Iterable[Operation]:
        yield Operation(
            method="POST",
            path="/api/questions/{id}",
            handle=self.answer,
            summary="Answer a question",
            body=Answer,
            answers={202: AcceptedAnswer},
            refusals=(NotFound, QuestionClosed),
        )
        yield Operation(
            method="POST",
            path="/api/approvals/{id}",
            handle=self.approve,
            summary="Approve or deny a call",
            answers={},
            refusals=(NotYet,),
            inside=False,
        )

    async def answer(self, call: Call) -> ASGIApp:
        given: Answer = call.body
        question_id = call.params["id"]
        session_id = await self._gateway.answer(question_id, given.text)
        return answer(202, AcceptedAnswer(question_id, session_id))

    async def approve(self, call: Call) -> ASGIApp:
        raise NotYet("Approving a call")
