"""Approvals of tool calls, and the rules that people made with them."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.api import rules
from holdfast.api.requests import Judgement, RulesQuery
from holdfast.api.results import AcceptedAnswer
from holdfast.core.errors import BadInput, Deleted, DuplicateOtherContent, NotFound, QuestionClosed
from holdfast.core.plans.answer import Answer
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.responses import json_response

OWNER = "owner"


class Approvals:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="POST",
            path="/api/approvals/{id}",
            handle=self.judge,
            summary="Approve or deny a call",
            body=Judgement,
            responses={202: AcceptedAnswer},
            refusals=(NotFound, QuestionClosed, DuplicateOtherContent),
        )
        yield Endpoint(
            method="GET",
            path="/api/rules",
            handle=self.rules,
            summary="List what was allowed for conversations",
            query=RulesQuery,
            responses={200: rules.RulesView},
            refusals=(NotFound, Deleted),
        )
        yield Endpoint(
            method="DELETE",
            path="/api/rules/{id}",
            handle=self.remove_rule,
            summary="Take a rule back",
            responses={200: rules.RuleView},
            refusals=(NotFound,),
        )

    async def judge(self, request: Request) -> ASGIApp:
        given: Judgement = request.body
        question_id = request.params["id"]
        if given.reason and given.verdict != "deny":
            raise BadInput("A `reason` belongs to a denial. Leave it out to approve.")
        answer = Answer(
            by=OWNER,
            verdict=given.verdict,
            scope=given.scope,
            reason=given.reason.strip(),
            dedup_key=f"answer|{question_id}|{given.client_id}" if given.client_id else None,
        )
        return json_response(202, AcceptedAnswer(question_id, await self._gateway.judge(question_id, answer)))

    async def rules(self, request: Request) -> ASGIApp:
        wanted: RulesQuery = request.query
        if wanted.session is not None:
            await self._gateway.session(wanted.session)
        return json_response(200, rules.RulesView([rules.rule(each) for each in await self._gateway.rules(wanted.session)]))

    async def remove_rule(self, request: Request) -> ASGIApp:
        return json_response(200, rules.rule(await self._gateway.remove_rule(request.params["id"], by=OWNER)))
