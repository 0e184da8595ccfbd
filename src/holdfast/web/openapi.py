"""The OpenAPI document, made from the table of endpoints: what is served is what is described."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.types import ASGIApp

from holdfast.api.openai import DoorFailed
from holdfast.api.results import Failed
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.openai.errors import PREFIX
from holdfast.web.responses import Response, json_response

PATH = "/api/openapi.json"
REF = "#/components/schemas/{name}"
ABOUT = (
    "A gateway for AI agents whose conversations hold. HEAD works wherever GET does, apart from the event stream. "
    "Any request may get 503 `too_many_connections` when the server cannot serve more connections. "
    "Events, their names and their order are described in docs/http-api.md."
)


class OpenApi:
    """`endpoints` are all the others; its own is added. Few ever ask for the document, so it is made for the first who does: that takes as
    long as a third of what a start does once everything is loaded.
    """

    def __init__(self, endpoints: Sequence[Endpoint], version: str) -> None:
        self._endpoints, self._version = (*endpoints, *self.endpoints()), version

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(method="GET", path=PATH, handle=self.read, summary="This document", responses={200: dict[str, Any]}, inside=False)

    async def read(self, request: Request) -> ASGIApp:
        return self._response

    @cached_property
    def _response(self) -> Response:
        return json_response(200, document(self._endpoints, self._version))


def document(endpoints: Sequence[Endpoint], version: str) -> dict[str, Any]:
    types: dict[Any, None] = {Failed: None, DoorFailed: None}
    for endpoint in endpoints:
        for kind in (endpoint.body, endpoint.query, *endpoint.responses.values()):
            if kind is not None and kind is not bytes:
                types[kind] = None
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    shapes = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _endpoint(endpoint, shapes, components)
    for query in {endpoint.query for endpoint in endpoints if endpoint.query is not None}:
        components.pop(query.__name__, None)  # A query is a list of parameters here, not an object.
    return {
        "openapi": "3.1.0",
        "info": {"title": "Holdfast", "version": version, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "holdfast"},
            },
        },
    }


def _endpoint(endpoint: Endpoint, shapes: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": _name(endpoint),
        "security": [] if endpoint.open else [{"token": []}, {"cookie": []}],
        "responses": {
            **{str(status): _success(endpoint, status, kind, shapes) for status, kind in endpoint.responses.items()},
            **{str(status): _failure(endpoint, status, shapes) for status in sorted(endpoint.failures)},
        },
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    if endpoint.query is not None:
        fields = components[endpoint.query.__name__]["properties"]
        parameters += [{"name": name, "in": "query", "required": False, "schema": schema} for name, schema in fields.items()]
    if endpoint.streams:
        parameters.append({"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"}})
    if parameters:
        described["parameters"] = parameters
    if endpoint.body is not None:
        described["requestBody"] = {"required": not endpoint.body_optional, "content": _json(shapes[endpoint.body])}
    if endpoint.octets:
        octets = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
        described["requestBody"] = {"required": True, "content": octets}
    return described


def _success(endpoint: Endpoint, status: int, kind: Any, shapes: dict[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if kind is bytes:
        described["content"] = {endpoint.content_types[status]: {"schema": {"type": "string"}}}
    elif kind is not None:
        described["content"] = _json(shapes[kind])
    return described


def _failure(endpoint: Endpoint, status: int, shapes: dict[Any, Any]) -> dict[str, Any]:
    shape = shapes[DoorFailed if endpoint.path.startswith(PREFIX) else Failed]
    return {"description": HTTPStatus(status).phrase, "content": _json(shape)}


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _name(endpoint: Endpoint) -> str:
    words = re.findall(r"\w+", endpoint.path.replace("{id}", "one"))
    return "_".join((endpoint.method.lower(), *words))
