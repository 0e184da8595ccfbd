"""Answers to the questions of agents. A late answer is refused."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.api.requests import Answer
from holdfast.api.results import AcceptedAnswer
from holdfast.core.errors import DuplicateOtherContent, NotFound, QuestionClosed
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.errors import NotYet
from holdfast.web.responses import json_response


class Questions:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="POST",
            path="/api/questions/{id}",
            handle=self.answer,
            summary="Answer a question",
            body=Answer,
            responses={202: AcceptedAnswer},
            refusals=(NotFound, QuestionClosed, DuplicateOtherContent),
        )
        yield Endpoint(
            method="POST",
            path="/api/approvals/{id}",
            handle=self.approve,
            summary="Approve or deny a call",
            responses={},
            refusals=(NotYet,),
            inside=False,
        )

    async def answer(self, request: Request) -> ASGIApp:
        given: Answer = request.body
        question_id = request.params["id"]
        session_id = await self._gateway.answer(question_id, given.text, client_id=given.client_id)
        return json_response(202, AcceptedAnswer(question_id, session_id))

    async def approve(self, request: Request) -> ASGIApp:
        raise NotYet("Approving a call")
