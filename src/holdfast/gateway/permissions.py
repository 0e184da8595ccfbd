"""Whether a call may start: what is configured, what people have allowed for its conversation, and what they said about this very call."""

import asyncio
from collections.abc import Sequence

import msgspec

from holdfast.core import approvals, policy
from holdfast.core.approvals import Approval, Clearance
from holdfast.core.errors import Unavailable
from holdfast.core.history import Call
from holdfast.core.policy import Decision, Pattern, Request, Rules, Verdict
from holdfast.core.redaction import Secrets
from holdfast.gateway.people import People
from holdfast.ports.agents import AgentRequest
from holdfast.ports.inbox import Inbox
from holdfast.ports.tools import Tool


class Permissions:
    """The one place that decides, for every attempt of this process."""

    def __init__(self, rules: Rules, store: Inbox, people: People, secrets: Secrets) -> None:
        self._rules, self._store, self._people, self._secrets = rules, store, people, secrets

    async def clear(self, request: AgentRequest, call: Call, tool: Tool, given: Approval | None) -> Clearance:
        """`request`: of the turn that makes the call. `given`: what a person said about it. Its arguments are as they are recorded."""
        await tool.ready()
        session_id, place = request.session_id, tool.place(request.session_id, request.folder)
        made = approvals.fingerprint(call.name, call.arguments, place) if given is not None else None
        if self._secrets.lost_in(call.arguments):
            return Clearance(place=place, refused=approvals.MARKED)
        oversteps = tool.shared(call.arguments) and not self._people.operates(request.session_key, request.sender)
        confined = tool.confined(call.arguments) and not oversteps
        clearance = approvals.clear(await self._decide(session_id, call, tool, confined), given, made=made, place=place)
        if clearance.asks and oversteps:
            clearance = msgspec.structs.replace(clearance, for_operators=True)
        if clearance.asks and self._secrets.holds(call.arguments):  # A person would be shown another call than the one that runs.
            return Clearance(place=place, refused=approvals.SECRET)
        return clearance

    async def _decide(self, session_id: str, call: Call, tool: Tool, confined: bool) -> Decision:
        """Rules of the conversation are read only for a call that would ask, and each time: one that was taken back allows nothing."""
        request = Request(
            tool=call.name,
            version=tool.version,
            arguments=call.arguments,
            effect=tool.effect(call.arguments),
            confined=confined,
            careful=call.careful,
        )
        decision = policy.decide(request, self._rules)
        if decision.verdict is not Verdict.ASK:
            return decision
        return policy.decide(request, self._rules, await self._granted(session_id))

    async def _granted(self, session_id: str) -> Sequence[Pattern]:
        while True:
            try:
                return tuple(policy.parse(rule.pattern) for rule in await self._store.rules(session_id))
            except Unavailable as error:
                await asyncio.sleep(error.retry_after_s)
