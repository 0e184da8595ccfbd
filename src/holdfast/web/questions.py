"""Answers to the questions of agents. A late answer is refused."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.api.requests import Answer
from holdfast.api.results import AcceptedAnswer
from holdfast.core.errors import BadInput, DuplicateOtherContent, NotFound, QuestionClosed, UnknownChoice
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request
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
            refusals=(NotFound, QuestionClosed, UnknownChoice, DuplicateOtherContent),
        )

    async def answer(self, request: Request) -> ASGIApp:
        given: Answer = request.body
        question_id = request.params["id"]
        said = given.text if given.choice is None else given.choice
        if said is None or None not in (given.text, given.choice):
            raise BadInput("Give either `text` or `choice`.")
        session_id = await self._gateway.answer(question_id, said, chosen=given.choice is not None, client_id=given.client_id)
        return json_response(202, AcceptedAnswer(question_id, session_id))
