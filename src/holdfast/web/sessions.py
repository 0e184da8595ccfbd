"""Sessions over HTTP: make, list, read, change; stop the turn that runs; leave a conversation and come back to it."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.types import ASGIApp

from holdfast.api import conversation, views
from holdfast.api.times import rfc3339
from holdfast.core.errors import BadInput, Deleted, NotFound, NothingToStop
from holdfast.core.events import SessionChanged
from holdfast.gateway.gateway import Gateway
from holdfast.web.bodies import Body, Nothing, Query
from holdfast.web.operations import Call, Operation
from holdfast.web.replies import answer

Title = Annotated[str, Meta(max_length=500)]
ClientId = Annotated[str, Meta(min_length=1, max_length=200)]
TurnId = Annotated[str, Meta(min_length=1, max_length=200)]
# Checked by the store, which says in words what there is.
State = Annotated[str, Meta(extra_json_schema={"enum": ["suspended", "pending", "running", "waiting", "deleted"]})]
OWNER = "owner"


class NewSession(Body, frozen=True):
    title: Title | None = None


class CreatedSession(msgspec.Struct):
    session_id: str
    session_key: str


class SessionsQuery(Query, frozen=True):
    """`query` searches titles and messages; `before` takes the `next` of the page before; `state` leaves out all others."""

    query: Annotated[str, Meta(max_length=1000)] = ""
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    before: Annotated[str, Meta(max_length=100)] | None = None
    archived: bool = False
    state: State | None = None


class SessionChange(Body, frozen=True):
    title: Title | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET


class Command(Body, frozen=True):
    """A command may be sent again under its `client_id` without being done again."""

    client_id: ClientId | None = None


class StopTurn(Command, frozen=True):
    """`turn_id`: stop this turn and no other. Without it, the turn that is open when the request arrives."""

    turn_id: TurnId | None = None


class StoppedTurn(msgspec.Struct):
    turn_id: str
    queued: int


class DeletedSession(msgspec.Struct):
    """Until `undo_until` it can be brought back; after that its content is removed."""

    session_id: str
    deleted_at: str
    undo_until: str


class ResetSession(msgspec.Struct):
    """`session_id` is the key's current one now. `changed`: it was begun by this; one that was never used stays."""

    session_id: str
    changed: bool


class ResumedSession(msgspec.Struct):
    """`goes_on`: its interrupted work continues. `changed`: false if all of this was so already."""

    session_id: str
    changed: bool
    goes_on: bool


class Sessions:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def operations(self) -> Iterable[Operation]:
        one = "/api/sessions/{id}"
        yield Operation(
            method="GET",
            path=one,
            handle=self.read,
            summary="A session and the newest page of its conversation",
            answers={200: views.SessionView},
            refusals=(NotFound, Deleted),
        )
        yield Operation(
            method="PATCH",
            path=one,
            handle=self.change,
            summary="Change title, pin or archive",
            body=SessionChange,
            answers={200: views.SummaryView},
            refusals=(NotFound, Deleted),
        )
        yield Operation(
            method="DELETE",
            path=one,
            handle=self.delete,
            summary="Delete a session; for a while it can be brought back",
            answers={200: DeletedSession},
            refusals=(NotFound, Deleted),
        )
        yield Operation(
            method="POST",
            path=f"{one}/undelete",
            handle=self.undelete,
            summary="Bring a deleted session back",
            body=Nothing,
            body_optional=True,
            answers={200: views.SummaryView},
            refusals=(NotFound, Deleted),
        )
        yield Operation(
            method="POST",
            path="/api/sessions",
            handle=self.create,
            summary="Make a session",
            body=NewSession,
            body_optional=True,
            answers={201: CreatedSession},
        )
        yield Operation(
            method="GET",
            path="/api/sessions",
            handle=self.list,
            summary="Sessions, newest first",
            query=SessionsQuery,
            answers={200: views.SessionPageView},
        )
        yield Operation(
            method="POST",
            path=f"{one}/stop",
            handle=self.stop,
            summary="Stop the turn that runs or waits",
            body=StopTurn,
            body_optional=True,
            answers={202: StoppedTurn},
            refusals=(NotFound, Deleted, NothingToStop),
        )
        yield Operation(
            method="POST",
            path=f"{one}/reset",
            handle=self.reset,
            summary="Start a new session of its key; this one is kept",
            body=Command,
            body_optional=True,
            answers={200: ResetSession},
            refusals=(NotFound, Deleted),
        )
        yield Operation(
            method="POST",
            path=f"{one}/resume",
            handle=self.resume,
            summary="Make it its key's current one, lift its suspension, continue its interrupted work",
            body=Command,
            body_optional=True,
            answers={200: ResumedSession},
            refusals=(NotFound, Deleted),
        )
        yield Operation(
            method="POST",
            path=f"{one}/suspend",
            handle=self.suspend,
            summary="Interrupt its turn and leave it; its next message starts a new session",
            body=Nothing,
            body_optional=True,
            answers={200: views.SummaryView},
            refusals=(NotFound, Deleted),
        )

    async def create(self, call: Call) -> ASGIApp:
        wanted: NewSession = call.body
        session = await self._gateway.create_session(wanted.title or None)
        return answer(201, CreatedSession(session.session_id, session.session_key))

    async def list(self, call: Call) -> ASGIApp:
        asked: SessionsQuery = call.query
        page = await self._gateway.store.sessions(
            limit=asked.limit, before=asked.before, query=asked.query, archived=asked.archived, state=asked.state
        )
        return answer(200, views.SessionPageView(sessions=[views.summary(session) for session in page.sessions], next=page.next))

    async def read(self, call: Call) -> ASGIApp:
        session, transcript = await self._gateway.view(call.params["id"])
        return answer(200, conversation.session(session, transcript))

    async def change(self, call: Call) -> ASGIApp:
        wanted: SessionChange = call.body
        if wanted == SessionChange():
            raise BadInput("There is nothing to change. Give `title`, `pinned` or `archived`.")
        change = SessionChanged(title=wanted.title, pinned=wanted.pinned, archived=wanted.archived)
        return answer(200, views.summary(await self._gateway.change_session(call.params["id"], change)))

    async def stop(self, call: Call) -> ASGIApp:
        wanted: StopTurn = call.body
        stopped = await self._gateway.stop_turn(call.params["id"], by=OWNER, client_id=wanted.client_id, turn_id=wanted.turn_id)
        return answer(202, StoppedTurn(stopped.turn_id or "", stopped.queued))

    async def delete(self, call: Call) -> ASGIApp:
        deleted = await self._gateway.delete_session(call.params["id"], by=OWNER)
        times = rfc3339(deleted.deleted_at), rfc3339(deleted.undo_until)
        return answer(200, DeletedSession(deleted.session_id, *times))

    async def undelete(self, call: Call) -> ASGIApp:
        return answer(200, views.summary(await self._gateway.undelete_session(call.params["id"], by=OWNER)))

    async def reset(self, call: Call) -> ASGIApp:
        wanted: Command = call.body
        moved = await self._gateway.reset(call.params["id"], by=OWNER, client_id=wanted.client_id)
        return answer(200, ResetSession(moved.session_id, moved.changed))

    async def resume(self, call: Call) -> ASGIApp:
        wanted: Command = call.body
        moved = await self._gateway.resume_session(call.params["id"], by=OWNER, client_id=wanted.client_id)
        return answer(200, ResumedSession(moved.session_id, moved.changed, moved.goes_on))

    async def suspend(self, call: Call) -> ASGIApp:
        return answer(200, views.summary(await self._gateway.suspend(call.params["id"])))
