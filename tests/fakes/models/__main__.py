"""A model server as a process of its own: `python -m tests.fakes.models --script FILE [--port N] [--record FILE] [--wire NAME]`.

It prints its address, and serves until it is killed.
"""

import argparse
import asyncio
from pathlib import Path

import msgspec

from tests.fakes.models.script import Script
from tests.fakes.models.server import SPEECHES, ModelServer


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.models")
    parser.add_argument("--wire", choices=SPEECHES, help="print the address as a client of this wire wants it")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True, help="a Script as JSON")
    parser.add_argument("--record", type=Path, help="each request is added here as a line of JSON")
    options = parser.parse_args()
    server = ModelServer(msgspec.json.decode(options.script.read_bytes(), type=Script), record=options.record)
    await server.start(options.port)
    print(server.root if options.wire == "anthropic" else server.url, flush=True)
    await asyncio.get_running_loop().create_future()


asyncio.run(main())
