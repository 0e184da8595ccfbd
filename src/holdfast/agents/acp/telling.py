"""Tells a turn what its agent says, does and asks for, in order. What an earlier attempt recorded is not repeated."""

import asyncio

import msgspec

from holdfast.agents.acp.session import Session
from holdfast.core import acp
from holdfast.core.acp import Asked, Finished, Fold, Move, PutOut, Replied, Said, Started, State, Thought, Wanted
from holdfast.core.approvals import APPROVE, SESSION
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import AgentRead
from holdfast.core.history import Call
from holdfast.core.output import SHOWN_HEAD, SHOWN_TAIL, Ends
from holdfast.core.redaction import Secrets
from holdfast.core.texts import storable
from holdfast.ports.agents import AgentRequest, ReportingFace

# An agent that has asked for a permission and then is silent this long waits for it. After this much output, the position is recorded.
QUIET_S = 0.5
CHECKPOINT_BYTES = 8 * 1024 * 1024
NOT_REPORTED = "The agent's process ended before it reported how this call ended."


class Telling:
    """For one attempt. `waiting`: permissions that the agent waits for. `open_calls`: calls whose end it has not reported."""

    def __init__(self, request: AgentRequest, turn: ReportingFace, secrets: Secrets) -> None:
        self._request, self._turn, self._secrets = request, turn, secrets
        self._known = {call.call_id for call in request.calls}
        self._earlier: str | None = None  # Text that is read again, until it is known how much of it is on record.
        self._written = 0
        self._spoke = self._continues = False
        self._thoughts = _no_thoughts()  # Since the last record of how far the agent was read.
        self.waiting: list[Asked] = []
        self.open_calls: set[str] = set()

    @property
    def state(self) -> str:
        """For the record of a prompt: a blank line separates its first text from what was said earlier."""
        return _encoded(State(spoke=self._spoke or bool(self._request.kept), apart=True))

    async def follow(self, session: Session, read: AgentRead, agent: str) -> Replied:
        """Tells everything until the agent has replied to the prompt. Raises `AgentGone`."""
        if not self._spoke and self._request.kept and not self._continues:
            self._earlier, self._written = "", min(read.written, len(self._request.kept))
        begins = msgspec.json.decode(read.fold, type=State) if read.fold else State(spoke=self._written > 0, apart=True)
        fold = Fold(session.session, begins)
        began, quiet_since = read.offset, _now()
        while True:
            lines = await session.wire.lines()
            for line, _ in lines:
                for move in fold.feed(line):
                    if isinstance(move, Replied) and move.request == read.request:
                        await self._settle_text()
                        self.waiting.clear()
                        return move
                    await self._tell(move, session, read.request or "")
            if lines:
                quiet_since = _now()
                if session.wire.offset - began >= CHECKPOINT_BYTES and not self.waiting and self._earlier is None:
                    began = session.wire.offset
                    if await self.link(session.read(agent, request=read.request, fold=_encoded(fold.state))):
                        await session.wire.drop()
                continue
            await self._settle_text()
            await session.wire.pause()
            if self.waiting and _now() - quiet_since >= QUIET_S:
                await self._permit(session, read.request or "")
                quiet_since = _now()

    async def link(self, read: AgentRead) -> bool:
        """As `ReportingFace.linked`, with what the agent thought aloud since the last such record."""
        if not await self._turn.linked(msgspec.structs.replace(read, thoughts=storable(self._thoughts.read().text))):
            return False
        self._thoughts = _no_thoughts()
        return True

    async def continues(self) -> None:
        """Keeps what earlier attempts said; what is said next follows it."""
        if not self._continues and not self._spoke:
            self._continues = True
            await self._turn.keep(len(self._request.kept))

    async def abandon(self) -> None:
        """The agent's process is gone: it waits for nothing, and the outcome of its open calls is unknown."""
        await self._settle_text()
        self.waiting.clear()
        earlier = [call.call_id for call in self._request.calls if call.effect is Effect.REPORTED and call.outcome is None]
        for call_id in sorted({*self.open_calls, *earlier}):
            await self._turn.report_result(call_id, ToolOutcome.UNKNOWN, NOT_REPORTED)
        self.open_calls.clear()

    async def _tell(self, move: Move, session: Session, prompt: str) -> None:
        match move:
            case Said(text):
                await self._say(text)
            case Thought(text):
                self._thoughts.add(text)
                if self._earlier is None:
                    await self._turn.think(text)
            case Started(call, name, arguments):
                await self._start(_call_id(prompt, call), name, arguments)
            case PutOut(call, text):
                await self._turn.report_output(_call_id(prompt, call), text)
            case Finished(call, outcome, text):
                self.waiting = [asked for asked in self.waiting if asked.call != call]
                self.open_calls.discard(_call_id(prompt, call))
                await self._turn.report_result(_call_id(prompt, call), outcome, text)
            case Asked():
                self.waiting.append(move)
            case Wanted():
                await session.wire.send(acp.refusal(move))

    async def _say(self, text: str) -> None:
        if self._earlier is not None:
            self._earlier += text
        else:
            self._spoke = True
            await self._turn.say(text)

    async def _start(self, call_id: str, name: str, arguments: dict[str, object]) -> None:
        if call_id not in self._known:
            await self._settle_text()  # What was said earlier comes before the call.
        self._known.add(call_id)
        self.open_calls.add(call_id)
        await self._turn.report(call_id, name, arguments)

    async def _settle_text(self) -> None:
        """Says the part of the text read again that is not on record. If the two cannot be matched, the text starts over."""
        if self._earlier is None:
            return
        again, self._earlier = self._earlier, None
        kept = self._request.kept
        recorded = kept[self._written :]
        plain = storable(self._secrets.text(again)) == again
        if plain and again.startswith(recorded):
            await self._turn.keep(len(kept))
            again = again[len(recorded) :]
        else:
            await self._turn.keep(self._written)
        self._continues = True
        if again:
            await self._say(again)

    async def _permit(self, session: Session, prompt: str) -> None:
        """The attempt may end here, and the agent's process waits as long as its people need."""
        wanted = [(_wanted(asked, prompt), _offer(asked)) for asked in self.waiting]
        given = await self._turn.permit(wanted)
        for asked in list(self.waiting):
            if answer := given.get(_wanted(asked, prompt).call_id):
                self.waiting.remove(asked)
                chosen = acp.chosen(asked, approved=answer.verdict == APPROVE, always=answer.scope == SESSION)
                await session.wire.send(acp.reply(asked.request, chosen))


def _wanted(asked: Asked, prompt: str) -> Call:
    return Call(call_id=f"{prompt}.permission.{asked.number}", name=asked.name, arguments=asked.arguments)


def _offer(asked: Asked) -> str | None:
    always = acp.always(asked)
    return None if always is None else f"what the agent calls “{always}”"


def _call_id(prompt: str, call: str) -> str:
    return storable(f"{prompt}.{call}")[:200]


def _no_thoughts() -> Ends:
    return Ends(SHOWN_HEAD, SHOWN_TAIL)


def _encoded(state: State) -> str:
    return msgspec.json.encode(state).decode()


def _now() -> float:
    return asyncio.get_running_loop().time()
