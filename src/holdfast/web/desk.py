"""What the page keeps and asks for beyond the conversations: drafts, what was seen, searches, the records of a turn, exports."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec
from starlette.types import ASGIApp

from holdfast.api import events, export, search
from holdfast.api.export import Whole
from holdfast.api.requests import DraftChange, ExportQuery, SearchQuery, Seen
from holdfast.api.results import DraftView
from holdfast.blobs import Blobs
from holdfast.core.errors import BadInput, Deleted, DraftChanged, NotFound
from holdfast.core.events import Logged, TurnStarted, TurnTaken
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.responses import Response, json_response
from holdfast.web.stream import seq_of

ONE = "/api/sessions/{id}"
GONE = (NotFound, Deleted)
EACH = 3
MOST_RECORDS = 5000


class TurnEvents(msgspec.Struct):
    """The records of a turn, as the event stream has them: each with its `name` and its `data`; `turn.started` and `turn.taken` also with
    the `pid` of the process that runs it from then on.
    """

    events: list[dict[str, Any]]


def _record(item: Logged, processes: dict[int, int]) -> dict[str, Any]:
    """Where a process takes the turn, also which one, as long as that is on record."""
    data, event = events.data(item), item.event
    if isinstance(event, TurnStarted | TurnTaken) and event.owner in processes:
        data["pid"] = processes[event.owner]
    return data


class Desk:
    def __init__(self, gateway: Gateway, blobs: Blobs) -> None:
        self._gateway, self._store, self._blobs = gateway, gateway.store, blobs

    def endpoints(self) -> Iterable[Endpoint]:
        draft = f"{ONE}/draft"
        yield Endpoint(
            method="GET", path=draft, handle=self.draft, summary="What is typed and not sent", responses={200: DraftView}, refusals=GONE
        )
        yield Endpoint(
            method="PUT",
            path=draft,
            handle=self.keep_draft,
            summary="Keep what is typed",
            body=DraftChange,
            responses={200: DraftView},
            refusals=(*GONE, DraftChanged),
        )
        yield Endpoint(
            method="POST", path=f"{ONE}/seen", handle=self.see, summary="Say what was seen", body=Seen, responses={204: None}, refusals=GONE
        )
        yield Endpoint(
            method="GET",
            path="/api/search",
            handle=self.search,
            summary="Messages and titles with these words",
            query=SearchQuery,
            responses={200: search.FoundView},
            refusals=GONE,
        )
        yield Endpoint(
            method="GET",
            path=f"{ONE}/turns/{{turn_id}}/events",
            handle=self.turn,
            summary="The records of a turn",
            responses={200: TurnEvents},
            refusals=GONE,
        )
        yield Endpoint(
            method="GET",
            path=f"{ONE}/export",
            handle=self.export,
            summary="A conversation as a file",
            query=ExportQuery,
            responses={200: bytes},
            content_types={200: "text/markdown"},
            refusals=GONE,
        )

    async def draft(self, request: Request) -> ASGIApp:
        found = await self._store.draft(request.params["id"])
        return json_response(200, DraftView(found.text, found.rev))

    async def keep_draft(self, request: Request) -> ASGIApp:
        wanted: DraftChange = request.body
        kept = await self._store.keep_draft(request.params["id"], wanted.text, rev=wanted.rev)
        if kept is None:
            raise DraftChanged(request.params["id"])
        return json_response(200, DraftView(kept.text, kept.rev))

    async def see(self, request: Request) -> ASGIApp:
        wanted: Seen = request.body
        session = await self._gateway.session(request.params["id"])
        seq, lost = seq_of(wanted.cursor, session)
        if lost is not None:
            raise BadInput(f"cursor={wanted.cursor!r} is not a place in this session. Use the `cursor` of the session you have.")
        await self._store.see(session.session_id, seq)
        return Response(204)

    async def search(self, request: Request) -> ASGIApp:
        asked: SearchQuery = request.query
        if asked.session is None:
            hits = await self._store.found(asked.q, sessions=asked.limit, each=EACH)
        else:
            hits = await self._store.found_in(asked.session, asked.q, limit=asked.limit)
        return json_response(200, search.found(hits, asked.q))

    async def turn(self, request: Request) -> ASGIApp:
        page = await self._store.turn_records(request.params["id"], request.params["turn_id"], limit=MOST_RECORDS)
        processes = {life.owner: life.pid for life in await self._store.lives() if life.pid}
        return json_response(200, TurnEvents([{"name": item.event.kind, "data": _record(item, processes)} for item in page]))

    async def export(self, request: Request) -> ASGIApp:
        asked: ExportQuery = request.query
        async with self._gateway.view(request.params["id"]) as (session, transcript):
            name, found = export.file_name(session, asked.as_), export.whole(session, transcript)
            exported = export.as_json(session, transcript) if asked.as_ == "json" else b""
        if asked.as_ == "md":
            exported = export.markdown(found)
        elif asked.as_ == "html":
            # Apart from the loop: reading much Markdown takes its time.
            exported = await asyncio.to_thread(export.page, found, await self._pictures(found))
        headers = ((b"content-disposition", f'attachment; filename="{name}"'.encode()),)
        return Response(200, exported, content_type=export.MEDIA_TYPES[asked.as_], headers=headers)

    async def _pictures(self, found: Whole) -> dict[str, bytes]:
        """Those that are still there."""
        read: dict[str, bytes] = {}
        for part in export.pictures(found):
            with suppress(NotFound):
                read[part.blob] = await self._blobs.read(part.blob)
        return read
