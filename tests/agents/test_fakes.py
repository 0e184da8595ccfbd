"""The model servers of the tests, as processes of their own."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from holdfast.agents.wires import providers
from tests.agents.wiring import KEY, WIRES, asking, results, step, streamed, user
from tests.fakes.models import Asked, Reply, Script, call, text

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_server_of_its_own_replies_by_how_far_the_conversation_is_and_records_what_it_was_asked(wire: str, tmp_path: Path) -> None:
    """So that a gateway which is killed and asks again gets the same reply."""
    script = Script(replies=(Reply(say=(call("terminal"),)), Reply(say=text("Done."))), by="steps")
    (tmp_path / "script.json").write_bytes(msgspec.json.encode(script))
    record = tmp_path / "asked.jsonl"
    options = ("--wire", wire, "--script", str(tmp_path / "script.json"), "--record", str(record))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.models", *options, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        client = providers.client(f"{wire}:fake", key=KEY, base_url=(await process.stdout.readline()).decode().strip())
        first = [(await streamed(client))[1] for _ in range(2)]
        recorded = step(first[1])
        _, last = await streamed(client, asking(user("Go."), recorded, *results(recorded, "noon")))
        await client.aclose()
    finally:
        process.kill()
        await process.wait()
    assert [response.calls for response in first] == [first[0].calls] * 2 and first[0].calls[0].name == "terminal"
    assert last.text == "Done."
    asked = [msgspec.json.decode(line, type=Asked) for line in record.read_bytes().splitlines()]
    assert [(each.number, each.wire) for each in asked] == [(number, wire) for number in range(3)]
