"""Messages over HTTP: acknowledged only once they are on disk (P1)."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.api import conversation
from holdfast.api.requests import MessageEdit, MessagesQuery, NewMessage
from holdfast.api.results import AcceptedMessage, EditedMessage, WithdrawnMessage
from holdfast.api.views import MessagePageView
from holdfast.core.errors import (
    AttachmentGone,
    BlobMissing,
    CannotEdit,
    ConversationBusy,
    Deleted,
    DuplicateOtherContent,
    LaneFull,
    NotFound,
    TooLate,
)
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request
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
            refusals=(NotFound, Deleted, LaneFull, DuplicateOtherContent, AttachmentGone, BlobMissing, ConversationBusy),
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

        yield Endpoint(
            method="PATCH",
            path="/api/sessions/{id}/messages/{message_id}",
            handle=self.edit,
            summary="Change what a message says",
            body=MessageEdit,
            responses={200: EditedMessage},
            refusals=(NotFound, Deleted, CannotEdit, DuplicateOtherContent),
        )

        yield Endpoint(
            method="DELETE",
            path="/api/sessions/{id}/messages/{message_id}",
            handle=self.withdraw,
            summary="Take back a message that waits",
            responses={200: WithdrawnMessage},
            refusals=(NotFound, Deleted, TooLate),
        )

    async def withdraw(self, request: Request) -> ASGIApp:
        session_id, message_id = request.params["id"], request.params["message_id"]
        await self._gateway.session(session_id)
        if not await self._gateway.withdraw(session_id, message_id):
            raise TooLate(message_id)
        return json_response(200, WithdrawnMessage(message_id, session_id))

    async def edit(self, request: Request) -> ASGIApp:
        wanted: MessageEdit = request.body
        edited = await self._gateway.edit_message(
            request.params["id"], request.params["message_id"], wanted.text, client_id=wanted.client_id
        )
        return json_response(200, EditedMessage(edited.message_id, edited.session_id, edited.effect))

    async def earlier(self, request: Request) -> ASGIApp:
        asked: MessagesQuery = request.query
        async with self._gateway.view(request.params["id"]) as (session, transcript):
            return json_response(200, conversation.page(session, transcript, asked.before, asked.limit))

    async def post(self, request: Request) -> ASGIApp:
        message: NewMessage = request.body
        accepted = await self._gateway.post(
            request.params["id"], message.text, client_id=message.client_id, attachments=message.attachments, mode=message.mode
        )
        return json_response(
            200 if accepted.duplicate else 202, AcceptedMessage(accepted.message_id, accepted.session_id, accepted.answered)
        )
