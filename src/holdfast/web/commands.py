"""What can be said to the gateway itself, for those who offer it to people."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.api.results import CommandList, CommandUsage
from holdfast.core.commands import COMMANDS, SENDING
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.responses import json_response


class Commands:
    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="GET",
            path="/api/commands",
            handle=self.list,
            summary="The commands that a message can give the gateway",
            responses={200: CommandList},
            inside=False,
        )

    async def list(self, request: Request) -> ASGIApp:
        known = [CommandUsage(name, usage.form, usage.sentence, name in SENDING) for name, usage in COMMANDS.items()]
        return json_response(200, CommandList(known))
