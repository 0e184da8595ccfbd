"""Sessions over HTTP: create, list, read, change and delete them; stop a turn; leave a conversation and go back to it."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.api import conversation, views
from holdfast.api.requests import Branch, Command, NewSession, SessionChange, SessionQuery, SessionsQuery, StopTurn
from holdfast.api.results import CreatedSession, DeletedSession, ResetSession, ResumedSession, StoppedTurn
from holdfast.api.times import rfc3339
from holdfast.core.errors import BadInput, Deleted, NotFound, NothingToStop, UnfitFolder
from holdfast.core.events import SessionChanged
from holdfast.core.plans.branch import NotOverYet, TooMuchToCopy
from holdfast.gateway.gateway import Gateway
from holdfast.ports.desk import NOTHING
from holdfast.web.endpoints import Endpoint, Request, command
from holdfast.web.responses import json_response

ONE = "/api/sessions/{id}"
OWNER = "owner"


class Sessions:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def endpoints(self) -> Iterable[Endpoint]:
        yield from self._all_sessions()
        yield from self._one_session()
        yield from self._commands()

    def _all_sessions(self) -> Iterable[Endpoint]:
        path = "/api/sessions"
        yield Endpoint(
            method="POST",
            path=path,
            handle=self.create,
            summary="Make a session",
            body=NewSession,
            body_optional=True,
            responses={201: CreatedSession},
            refusals=(UnfitFolder,),
        )
        yield Endpoint(
            method="GET",
            path=path,
            handle=self.list,
            summary="Sessions, newest first",
            query=SessionsQuery,
            responses={200: views.SessionPageView},
        )

    def _one_session(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="GET",
            path=ONE,
            handle=self.read,
            summary="A session and the newest page of its conversation",
            query=SessionQuery,
            responses={200: views.SessionView},
            refusals=(NotFound, Deleted),
        )
        yield Endpoint(
            method="PATCH",
            path=ONE,
            handle=self.change,
            summary="Change title, pin or archive",
            body=SessionChange,
            responses={200: views.SummaryView},
            refusals=(NotFound, Deleted),
        )
        yield Endpoint(
            method="DELETE",
            path=ONE,
            handle=self.delete,
            summary="Delete a session; for a while it can be brought back",
            responses={200: DeletedSession},
            refusals=(NotFound, Deleted),
        )

    def _commands(self) -> Iterable[Endpoint]:
        gone = (NotFound, Deleted)
        yield command(f"{ONE}/undelete", self.undelete, "Bring a deleted session back", {200: views.SummaryView}, refusals=gone)
        yield command(
            f"{ONE}/stop",
            self.stop,
            "Stop the turn that runs or waits",
            {202: StoppedTurn},
            body=StopTurn,
            refusals=(*gone, NothingToStop),
        )
        yield command(
            f"{ONE}/reset",
            self.reset,
            "Start a new session of its key; this one is kept",
            {200: ResetSession},
            body=Command,
            refusals=gone,
        )
        yield Endpoint(
            method="POST",
            path=f"{ONE}/branch",
            handle=self.branch,
            summary="Start a new session with what was said up to a message",
            body=Branch,
            responses={201: CreatedSession},
            refusals=(*gone, NotOverYet, TooMuchToCopy),
        )
        yield command(
            f"{ONE}/resume",
            self.resume,
            "Make it its key's current one, lift its suspension, continue its interrupted work",
            {200: ResumedSession},
            body=Command,
            refusals=gone,
        )
        yield command(
            f"{ONE}/suspend",
            self.suspend,
            "Interrupt its turn and leave it; its next message starts a new session",
            {200: views.SummaryView},
            refusals=gone,
        )

    async def create(self, request: Request) -> ASGIApp:
        wanted: NewSession = request.body
        session = await self._gateway.create_session(wanted.title or None, folder=wanted.folder)
        return json_response(201, CreatedSession(session.session_id, session.session_key))

    async def list(self, request: Request) -> ASGIApp:
        asked: SessionsQuery = request.query
        page = await self._gateway.store.sessions(
            limit=asked.limit, before=asked.before, query=asked.query, archived=asked.archived, state=asked.state
        )
        glances = await self._gateway.store.glances([session.session_id for session in page.sessions])
        listed = [views.listed(session, glances.get(session.session_id, NOTHING)) for session in page.sessions]
        return json_response(200, views.SessionPageView(sessions=listed, next=page.next))

    async def read(self, request: Request) -> ASGIApp:
        asked: SessionQuery = request.query
        extent = conversation.PAGE._replace(messages=asked.messages)
        async with self._gateway.view(request.params["id"]) as (session, transcript):
            schedules = await self._gateway.store.schedules(session.session_key)
            return json_response(200, conversation.session(session, transcript, extent, schedules=schedules))

    async def change(self, request: Request) -> ASGIApp:
        wanted: SessionChange = request.body
        if wanted == SessionChange():
            raise BadInput("There is nothing to change. Give `title`, `pinned`, `archived` or `model`.")
        change = SessionChanged(title=wanted.title, pinned=wanted.pinned, archived=wanted.archived, model=wanted.model)
        return json_response(200, views.summary(await self._gateway.change_session(request.params["id"], change)))

    async def stop(self, request: Request) -> ASGIApp:
        wanted: StopTurn = request.body
        stopped = await self._gateway.stop_turn(request.params["id"], by=OWNER, client_id=wanted.client_id, turn_id=wanted.turn_id)
        return json_response(202, StoppedTurn(stopped.turn_id or "", stopped.queued))

    async def delete(self, request: Request) -> ASGIApp:
        deleted = await self._gateway.delete_session(request.params["id"], by=OWNER)
        times = rfc3339(deleted.deleted_at), rfc3339(deleted.undo_until)
        return json_response(200, DeletedSession(deleted.session_id, *times))

    async def undelete(self, request: Request) -> ASGIApp:
        return json_response(200, views.summary(await self._gateway.undelete_session(request.params["id"], by=OWNER)))

    async def reset(self, request: Request) -> ASGIApp:
        wanted: Command = request.body
        moved = await self._gateway.reset(request.params["id"], by=OWNER, client_id=wanted.client_id)
        return json_response(200, ResetSession(moved.session_id, moved.changed))

    async def branch(self, request: Request) -> ASGIApp:
        wanted: Branch = request.body
        made = await self._gateway.branch(request.params["id"], wanted.message_id, by=OWNER, client_id=wanted.client_id)
        return json_response(201, CreatedSession(made.session_id, made.session_key))

    async def resume(self, request: Request) -> ASGIApp:
        wanted: Command = request.body
        moved = await self._gateway.resume_session(request.params["id"], by=OWNER, client_id=wanted.client_id)
        return json_response(200, ResumedSession(moved.session_id, moved.changed, moved.continues))

    async def suspend(self, request: Request) -> ASGIApp:
        return json_response(200, views.summary(await self._gateway.suspend(request.params["id"])))
