"""Editors over HTTP: each asks again and again what is wanted of it, and brings the answers to what it was asked before."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.api.requests import EditorNews
from holdfast.api.results import EditorWork, WantedFile
from holdfast.core.errors import Deleted, NotFound
from holdfast.gateway.editors import READ, WRITE, Editors, FileAnswer
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request, command
from holdfast.web.responses import json_response


class EditorDoor:
    def __init__(self, gateway: Gateway, editors: Editors) -> None:
        self._gateway, self._editors = gateway, editors

    def endpoints(self) -> Iterable[Endpoint]:
        yield command(
            "/api/sessions/{id}/editor",
            self.serve,
            "What is wanted of the editor that shows a session",
            {200: EditorWork},
            body=EditorNews,
            refusals=(NotFound, Deleted),
        )

    async def serve(self, request: Request) -> ASGIApp:
        told: EditorNews = request.body
        session = await self._gateway.session(request.params["id"])
        offers = [*([READ] if told.reads else []), *([WRITE] if told.writes else [])]
        answers = [FileAnswer(request_id=each.request_id, text=each.text, failed=each.failed) for each in told.answers]
        wanted = await self._editors.serve(session.session_id, offers, answers)
        files = [WantedFile(request_id=each.request_id, what=each.what, path=each.path, text=each.text) for each in wanted]
        return json_response(200, EditorWork(files=files, used=self._editors.used))
