"""The machine-readable form of the API, made from the table of operations: what is served is what is described."""

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.types import ASGIApp

from holdfast.web.errors import Failed
from holdfast.web.operations import Call, Operation
from holdfast.web.replies import answer

PATH = "/api/openapi.json"
REF = "#/components/schemas/{name}"
ABOUT = (
    "A gateway for AI agents whose conversations hold. HEAD works wherever GET does, apart from the event stream. "
    "Any request may be answered with 503 `too_many_connections` when the server has as many connections as it can serve. "
    "Events, their names and their order are described in docs/http-api.md."
)


class OpenApi:
    """`operations` are all the others; its own is added."""

    def __init__(self, operations: Sequence[Operation], version: str) -> None:
        self._reply = answer(200, document((*operations, *self.operations()), version))

    def operations(self) -> Iterable[Operation]:
        yield Operation(method="GET", path=PATH, handle=self.read, summary="This document", answers={200: dict[str, Any]}, inside=False)

    async def read(self, call: Call) -> ASGIApp:
        return self._reply


def document(operations: Sequence[Operation], version: str) -> dict[str, Any]:
    types: dict[Any, None] = {Failed: None}
    for operation in operations:
        for kind in (operation.body, operation.query, *operation.answers.values()):
            if kind is not None and kind is not bytes:
                types[kind] = None
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    shapes = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, shapes, components)
        if operation.query is not None:  # A query is a list of parameters here, not an object.
            components.pop(operation.query.__name__, None)
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


def _operation(operation: Operation, shapes: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": _name(operation),
        "security": [] if operation.open else [{"token": []}, {"cookie": []}],
        "responses": {
            **{str(status): _answer(operation, status, kind, shapes) for status, kind in operation.answers.items()},
            **{str(status): _failure(status, shapes) for status in sorted(operation.failures)},
        },
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in re.findall(r"{(\w+)}", operation.path)
    ]
    if operation.query is not None:
        fields = components[operation.query.__name__]["properties"]
        parameters += [{"name": name, "in": "query", "required": False, "schema": schema} for name, schema in fields.items()]
    if operation.streams:
        parameters.append({"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"}})
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = {"required": not operation.body_optional, "content": _json(shapes[operation.body])}
    return described


def _answer(operation: Operation, status: int, kind: Any, shapes: dict[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if kind is bytes:
        described["content"] = {operation.content_types[status]: {"schema": {"type": "string"}}}
    elif kind is not None:
        described["content"] = _json(shapes[kind])
    return described


def _failure(status: int, shapes: dict[Any, Any]) -> dict[str, Any]:
    return {"description": HTTPStatus(status).phrase, "content": _json(shapes[Failed])}


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _name(operation: Operation) -> str:
    words = re.findall(r"\w+", operation.path.replace("{id}", "one"))
    return "_".join((operation.method.lower(), *words))
