"""`/v1/responses`: create a response, read it again whenever, stream it from anywhere, cancel it. Every response runs in the background:
a client that leaves stops nothing."""

from collections.abc import Iterable, Iterator

from starlette.types import ASGIApp

from holdfast.api.openai import NewResponse, ResponseObject, ResponseQuery
from holdfast.core.answering import Answering
from holdfast.core.errors import (
    AttachmentGone,
    BlobMissing,
    ConversationBusy,
    Deleted,
    LaneFull,
    NotFound,
    NothingToStop,
)
from holdfast.core.events import Logged
from holdfast.core.pieces import Piece
from holdfast.core.recitals import Recited
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request, command
from holdfast.web.openai import asking, frames, naming, requests
from holdfast.web.openai.conversations import Conversations
from holdfast.web.openai.errors import KeyReused, NoSuchModel, NoSuchResponse, Unsupported
from holdfast.web.openai.following import Means, beginning, read
from holdfast.web.openai.output import DELTAS, ROOM, Event, Output, numbered
from holdfast.web.openai.replies import Stream, Whole, session_header
from holdfast.web.responses import json_response

PATH = "/v1/responses"
OWNER = "owner"
# How long a cancelled response may take to end before it is shown as it is.
CANCEL_S = 10.0
CANCEL_TRIES = 3


class Responses:
    def __init__(self, means: Means, conversations: Conversations) -> None:
        self._means, self._conversations = means, conversations

    def endpoints(self) -> Iterable[Endpoint]:
        gone = (NotFound, Deleted)
        yield Endpoint(
            method="POST",
            path=PATH,
            handle=self.create,
            summary="Say something, and get the answer as a response",
            body=NewResponse,
            responses={200: ResponseObject},
            refusals=(*gone, NoSuchModel, LaneFull, KeyReused, AttachmentGone, BlobMissing, ConversationBusy),
        )
        yield Endpoint(
            method="GET",
            path=f"{PATH}/{{id}}",
            handle=self.retrieve,
            summary="A response as it stands, or its events behind one of them",
            query=ResponseQuery,
            responses={200: ResponseObject},
            refusals=(NoSuchResponse, Deleted),
        )
        yield command(
            f"{PATH}/{{id}}/cancel",
            self.cancel,
            "Stop what works on a response",
            {200: ResponseObject},
            refusals=(NoSuchResponse, Deleted),
        )

    async def create(self, request: Request) -> ASGIApp:
        body: NewResponse = request.body
        session_id = await self._session(body)
        wanted = requests.read(
            request,
            door="responses",
            asked=await requests.asked(request, asking.response),
            model=body.model,
            session_id=session_id,
            recites=session_id is None,
            after=body.previous_response_id,
        )
        recited = await self._conversations.send(wanted)
        if body.stream:
            return self._stream(request, recited, 0, waits=bool(body.background))
        return await self._show(recited) if body.background else self._whole(request, recited)

    async def retrieve(self, request: Request) -> ASGIApp:
        asked: ResponseQuery = request.query
        recited = await self._recited(request.params["id"])
        if asked.stream and request.scope["method"] == "GET":
            return self._stream(request, recited, asked.starting_after, waits=True)
        return await self._show(recited)

    async def cancel(self, request: Request) -> ASGIApp:
        """One that waits is taken back, the turn of one that runs is stopped. One that is over stays as it is."""
        recited = await self._recited(request.params["id"])
        gateway = self._means.gateway
        for _ in range(CANCEL_TRIES):
            answering = await read(gateway, recited, Answering(recited.message_id, recited.seq))
            if answering.turn is not None and not answering.over:
                await _stop(gateway, recited.session_id, answering.turn.turn_id)
            elif not answering.over and not await gateway.withdraw(recited.session_id, recited.message_id):
                continue  # A turn has just taken it.
            break
        return self._whole(request, recited, patience_s=CANCEL_S)

    # what they share

    async def _session(self, body: NewResponse) -> str | None:
        """The session that a request names."""
        if body.previous_response_id is not None:
            if body.conversation is not None:
                raise Unsupported("conversation", "Give either `previous_response_id` or `conversation`.")
            return (await self._recited(body.previous_response_id, "previous_response_id")).session_id
        if isinstance(body.conversation, dict):
            name = body.conversation.get("id")
            if not isinstance(name, str):
                raise Unsupported("conversation", '`conversation` is the id of a session, or `{"id": ...}`.')
            return name
        return body.conversation

    async def _recited(self, name: str, param: str | None = None) -> Recited:
        found = naming.read(name)
        recited = await self._means.gateway.store.recited(found[1]) if found else None
        if found is None or recited is None or recited.session_id != found[0]:
            raise NoSuchResponse(name, param)
        await self._means.gateway.session(recited.session_id)
        return recited

    async def _show(self, recited: Recited) -> ASGIApp:
        answering, output = _begun(recited)
        await read(self._means.gateway, recited, answering, output.take)
        self._means.delivered.note(recited.message_id)  # Its client has its name from now on.
        response = json_response(200, output.body())
        response.headers = (session_header(recited),)
        return response

    def _whole(self, request: Request, recited: Recited, patience_s: float | None = None) -> ASGIApp:
        answering, output = _begun(recited)
        return Whole(self._means, requests.grant(request), recited, answering, output, patience_s=patience_s)

    def _stream(self, request: Request, recited: Recited, starting_after: int, *, waits: bool) -> ASGIApp:
        answering, output = _begun(recited)
        renderer = Rendered(recited, answering, output, starting_after, waits=waits)
        return Stream(self._means, requests.grant(request), recited, answering, renderer)


def _begun(recited: Recited) -> tuple[Answering, Output]:
    answering = Answering(recited.message_id, recited.seq)
    return answering, Output(recited, answering)


async def _stop(gateway: Gateway, session_id: str, turn_id: str) -> None:
    try:
        await gateway.stop_turn(session_id, by=OWNER, client_id=None, turn_id=turn_id)
    except NothingToStop:  # It has ended by itself.
        pass


class Rendered:
    """The events of a stream, behind `starting_after`. Where pieces of the text were pruned, a reader that has some of it is not given it
    twice: the events that end each text bring it whole.
    """

    def __init__(self, recited: Recited, answering: Answering, output: Output, starting_after: int, *, waits: bool) -> None:
        self.waits = waits
        self._recited, self._answering, self._output, self._after = recited, answering, output, starting_after
        self._seq, self._used = beginning(recited), 0
        self._torn = False

    def event(self, item: Logged, pieces: list[Piece]) -> bytes:
        self._torn = self._torn or (self._after > 0 and item.seq > max(self._seq + 1, self._recited.seq))
        self._seq = item.seq
        made = [self._frame(event) for event in numbered(item.seq, self._events(item, pieces))]
        self._used = len(made)
        return b"".join(made)

    def _events(self, item: Logged, pieces: list[Piece]) -> Iterator[Event]:
        if item.seq == self._recited.seq:
            yield self._output.created()
        for piece in pieces:
            yield from self._output.events(piece)
        if self._answering.over:
            yield from self._output.rest()

    def rest(self) -> bytes:
        return b"".join(self._frame(event) for event in numbered(self._seq, self._output.rest(), self._used))

    def broken(self, reason: str, message: str) -> bytes:
        """Its number is the last that the event of the log can have, so that a reader may continue behind it, too."""
        number = ROOM * self._seq + ROOM - 1
        event = {"type": "error", "code": reason, "message": message, "param": None, "sequence_number": number}
        return frames.frame(event, "error")

    def _frame(self, event: Event) -> bytes:
        if event["sequence_number"] <= self._after or (self._torn and event["type"] in DELTAS):
            return b""
        return frames.frame(event, event["type"])
