"""Messages over HTTP: acknowledged only once they are on disk (P1)."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.api import conversation
from holdfast.api.requests import MessagesQuery, NewMessage
from holdfast.api.results import AcceptedMessage
from holdfast.api.views import MessagePageView
from holdfast.core.errors import AttachmentGone, BlobMissing, Deleted, DuplicateOtherContent, LaneFull, NotFound
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.errors import NotYet
from holdfast.web.responses import json_response


class Messages:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="POST",
            path="/api/sessions/{id}/messages",
            handle=self.post,
            summary="Send a message, or a command such as /stop",
            body=NewMessage,
            responses={202: AcceptedMessage, 200: AcceptedMessage},
            refusals=(NotFound, Deleted, LaneFull, DuplicateOtherContent, AttachmentGone, BlobMissing, NotYet),
        )

        yield Endpoint(
            method="GET",
            path="/api/sessions/{id}/messages",
            handle=self.earlier,
            summary="A page of a conversation, before one of its messages",
            query=MessagesQuery,
            responses={200: MessagePageView},
            refusals=(NotFound, Deleted),
        )

    async def earlier(self, request: Request) -> ASGIApp:
        asked: MessagesQuery = request.query
        session, transcript = await self._gateway.view(request.params["id"])
        return json_response(200, conversation.page(session, transcript, asked.before, asked.limit))

    async def post(self, request: Request) -> ASGIApp:
        message: NewMessage = request.body
        if message.mode not in ("queue", "steer"):
            raise NotYet(f"The mode {message.mode!r}")
        accepted = await self._gateway.post(
            request.params["id"], message.text, client_id=message.client_id, attachments=message.attachments, mode=message.mode
        )
        return json_response(
            200 if accepted.duplicate else 202, AcceptedMessage(accepted.message_id, accepted.session_id, accepted.answered)
        )
