"""What we say to agents, and what our scripted one says, reads with the types of the protocol's own library."""

import json
from typing import Any

import pytest
from acp import schema

from holdfast.agents.acp import prompts
from holdfast.core import acp
from holdfast.core.acp import Abilities, Asked, Option
from holdfast.core.content import ImagePart
from holdfast.core.history import User


async def read(digest: str) -> bytes:
    return b"picture"


def params(line: bytes) -> Any:
    message = json.loads(line)
    assert message["jsonrpc"] == "2.0" and line.endswith(b"\n")
    return message["params"]


def test_our_requests_are_those_of_the_protocol() -> None:
    schema.InitializeRequest.model_validate(params(acp.request("a", "initialize", acp.initialize("1"))))
    schema.NewSessionRequest.model_validate({"cwd": "/x", "mcpServers": []})
    schema.LoadSessionRequest.model_validate({"cwd": "/x", "mcpServers": [], "sessionId": "s"})
    schema.ResumeSessionRequest.model_validate({"cwd": "/x", "mcpServers": [], "sessionId": "s"})
    schema.CancelNotification.model_validate(params(acp.notification("session/cancel", {"sessionId": "s"})))


def test_our_replies_are_those_of_the_protocol() -> None:
    asked = Asked(request=1, number=0, call=None, name="x", arguments={}, options=(Option("a", "A", "allow_once"),))
    for approved in (True, False):
        replied = json.loads(acp.reply(1, acp.chosen(asked, approved=approved, always=False)))["result"]
        schema.RequestPermissionResponse.model_validate(replied)


@pytest.mark.anyio
async def test_our_prompts_are_those_of_the_protocol() -> None:
    picture = ImagePart(blob="d", size=7, media_type="image/png", name="p.png")
    causes = [User(id="m", content="hello"), User(id="n", content=(picture,), about="[Scheduled.]")]
    for takes in ((), ("image",)):
        blocks = await prompts.blocks(causes, Abilities(takes=takes), read, first=("[note]", None))
        found = schema.PromptRequest.model_validate({"sessionId": "s", "prompt": blocks})
        assert [block.type for block in found.prompt] == ["text", "text", "text", "image" if takes else "text"]
