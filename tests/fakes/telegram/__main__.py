"""The server as a process of its own, with flood control: `python -m tests.fakes.telegram`. It prints its address. Each line of its
standard input is a list as JSON: `[chat, user, text]` is written by a person, `[]` asks for all that people see (`Seen`), in one line.
"""

import asyncio
import sys

import msgspec

from tests.fakes.telegram.flood import Flood
from tests.fakes.telegram.server import TelegramServer


class Message(msgspec.Struct, frozen=True, array_like=True):
    """One of the bot's, as it is shown now. `at`: when it came, in seconds of the wall clock. `edits`: how often it was changed."""

    chat: int
    text: str
    at: float
    edits: int


class Seen(msgspec.Struct, frozen=True):
    """`refused`: how often the bot was too fast."""

    messages: list[Message]
    refused: int


async def main() -> None:
    lines = asyncio.StreamReader(limit=2**24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    flood = Flood()
    async with TelegramServer(flood=flood) as server:
        print(server.base_url, flush=True)
        while line := await lines.readline():
            match msgspec.json.decode(line):
                case [int(chat), int(user), str(text)]:
                    server.say(chat, text, user=user)
                case _:
                    shown = [Message(one.chat, one.text, one.at, len(one.edits)) for one in server.shown]
                    print(msgspec.json.encode(Seen(shown, flood.refused)).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
