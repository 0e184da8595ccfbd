"""A server made with the protocol's own library: what our scripted one claims about the protocol is held to it."""

from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("library")


class Person(BaseModel):
    name: str
    age: int


class Sure(BaseModel):
    sure: bool


async def person() -> Person | Elicit[Person]:
    return Elicit("Who are you?", Person)


async def sure() -> Sure | Elicit[Sure]:
    return Elicit("Are you sure?", Sure)


@server.tool()
async def book(seat: str, who: Annotated[Person, Resolve(person)], agreed: Annotated[Sure, Resolve(sure)]) -> str:
    """Books a seat."""
    return f"{seat} for {who.name}, {who.age}, sure: {agreed.sure}"


@server.tool()
async def count(context: Context, to: int) -> str:
    """Counts."""
    for number in range(to):
        await context.report_progress(number + 1, to, f"at {number + 1}")
    return "counted"


if __name__ == "__main__":
    server.run()
