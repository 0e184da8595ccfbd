"""Background processes over HTTP: list them, read what they print, end one."""

from collections.abc import Iterable

from msgspec import structs
from starlette.types import ASGIApp

from holdfast.api import conversation, processes
from holdfast.api.requests import ProcessesQuery, ProcessQuery
from holdfast.core.errors import Deleted, NotFound
from holdfast.gateway.background import Background
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request, command
from holdfast.web.responses import json_response

OWNER = "owner"
PATH = "/api/processes"


class Processes:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="GET",
            path=PATH,
            handle=self.list,
            summary="Background processes that run, or all of a session",
            query=ProcessesQuery,
            responses={200: processes.ProcessesView},
            refusals=(NotFound, Deleted),
        )
        yield Endpoint(
            method="GET",
            path=f"{PATH}/{{id}}",
            handle=self.read,
            summary="A background process and what it prints",
            query=ProcessQuery,
            responses={200: processes.ProcessOutputView},
            refusals=(NotFound, Deleted),
        )
        yield command(
            f"{PATH}/{{id}}/kill",
            self.kill,
            "End a background process",
            {200: processes.ProcessView},
            refusals=(NotFound, Deleted),
        )

    async def list(self, request: Request) -> ASGIApp:
        wanted: ProcessesQuery = request.query
        store = self._gateway.store
        if wanted.session is None:
            found = await store.running_processes()
        else:
            found = await store.processes((await self._gateway.session(wanted.session)).session_id)
        return json_response(200, processes.ProcessesView([conversation.process(each) for each in found]))

    async def read(self, request: Request) -> ASGIApp:
        wanted: ProcessQuery = request.query
        background = await self._of(request.params["id"])
        process = await self._gateway.store.process(request.params["id"])
        printed = await background.output(process, offset=wanted.offset, limit=wanted.limit)
        output = processes.OutputView(**structs.asdict(printed))
        return json_response(200, processes.ProcessOutputView(process=conversation.process(process), output=output))

    async def kill(self, request: Request) -> ASGIApp:
        background = await self._of(request.params["id"])
        return json_response(200, conversation.process(await background.kill(request.params["id"], by=OWNER)))

    async def _of(self, process_id: str) -> Background:
        """What looks after it. Raises `NotFound`, also where nothing runs in the background here, and `Deleted` with its session."""
        process, background = await self._gateway.store.process(process_id), self._gateway.background
        await self._gateway.session(process.session_id)
        if background is None:
            raise NotFound("process", process_id)
        return background
