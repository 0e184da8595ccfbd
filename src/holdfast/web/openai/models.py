"""`/v1/models`: the names that a request may have as its model."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.api.openai import ModelList, ModelObject
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.openai.conversations import Conversations
from holdfast.web.openai.errors import NoSuchModel
from holdfast.web.responses import json_response


class Models:
    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="GET",
            path="/v1/models",
            handle=self.list,
            summary="The models to choose from",
            responses={200: ModelList},
            inside=False,
        )
        yield Endpoint(
            method="GET",
            path="/v1/models/{name}",
            handle=self.read,
            summary="One of the models",
            responses={200: ModelObject},
            refusals=(NoSuchModel,),
            rest=True,
            inside=False,
        )

    async def list(self, request: Request) -> ASGIApp:
        return json_response(200, ModelList([ModelObject(name) for name in self._conversations.models]))

    async def read(self, request: Request) -> ASGIApp:
        wanted, known = request.params["name"], self._conversations.models
        if wanted not in known:
            raise NoSuchModel(wanted, known)
        return json_response(200, ModelObject(wanted))
