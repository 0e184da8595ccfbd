"""Messages over HTTP: answered only once they are on disk (P1)."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from starlette.types import ASGIApp

from holdfast.api import conversation
from holdfast.api.views import MessagePageView
from holdfast.core.errors import Deleted, DuplicateOtherContent, LaneFull, NotFound
from holdfast.gateway.gateway import Gateway
from holdfast.web.bodies import Body, Query
from holdfast.web.errors import NotYet
from holdfast.web.operations import Call, Operation
from holdfast.web.replies import answer
from holdfast.web.sessions import ClientId


class NewMessage(Body, frozen=True):
    """The same `client_id` with the same text again is the same message."""

    text: str
    client_id: ClientId | None = None
    mode: Literal["queue", "steer", "interrupt", "reject"] = "queue"
    attachments: tuple[Any, ...] = ()


class MessagesQuery(Query, frozen=True):
    """`before` is the `earlier` of the page that is there already; without it, the newest page."""

    before: Annotated[str, Meta(max_length=500)] | None = None
    limit: Annotated[int, Meta(ge=1, le=conversation.MOST_MESSAGES)] = 100


class AcceptedMessage(msgspec.Struct):
    """`session_id`: where the message went. If the session is not current, the key's current one gets it; if it is suspended or past a
    reset boundary, a new one does; `/new` and `/resume` are answered where they lead.
    """

    message_id: str
    session_id: str


class Messages:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def operations(self) -> Iterable[Operation]:
        yield Operation(
            method="POST",
            path="/api/sessions/{id}/messages",
            handle=self.post,
            summary="Send a message, or a command such as /stop",
            body=NewMessage,
            answers={202: AcceptedMessage, 200: AcceptedMessage},
            refusals=(NotFound, Deleted, LaneFull, DuplicateOtherContent, NotYet),
        )

        yield Operation(
            method="GET",
            path="/api/sessions/{id}/messages",
            handle=self.earlier,
            summary="A page of a conversation, before one of its messages",
            query=MessagesQuery,
            answers={200: MessagePageView},
            refusals=(NotFound, Deleted),
        )

    async def earlier(self, call: Call) -> ASGIApp:
        asked: MessagesQuery = call.query
        session, transcript = await self._gateway.view(call.params["id"])
        return answer(200, conversation.page(session, transcript, asked.before, asked.limit))

    async def post(self, call: Call) -> ASGIApp:
        message: NewMessage = call.body
        if message.mode != "queue":
            raise NotYet(f"The mode {message.mode!r}")
        if message.attachments:
            raise NotYet("Sending attachments")
        accepted = await self._gateway.post(call.params["id"], message.text, client_id=message.client_id)
        return answer(200 if accepted.duplicate else 202, AcceptedMessage(accepted.message_id, accepted.session_id))
